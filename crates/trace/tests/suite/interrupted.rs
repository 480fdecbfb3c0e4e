//! The progress callback can stop reading.

use std::ops::ControlFlow;
use std::path::PathBuf;

use busbound_trace::{OpenError, ReadOptions, open_with_progress};

#[test]
fn reading_stops_when_the_callback_breaks() {
    for name in [
        "launch_bound.json.gz",
        "hostile/amd.json",
        "recorded/offload.bbt",
        "nsight/off.sqlite",
        "xplane/pageable.xplane.pb",
    ] {
        let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../fixtures", name].iter().collect();
        for threads in [1, 3] {
            let options = ReadOptions::default().threads(threads);
            let mut calls = 0;
            let read = open_with_progress(&path, &options, &mut |_| {
                calls += 1;
                ControlFlow::Break(())
            });
            assert!(matches!(read, Err(OpenError::Interrupted { .. })), "{name}");
            assert!(calls > 0 && calls < 3, "{name} was read further: {calls} calls");
        }
        let read = open_with_progress(&path, &ReadOptions::default(), &mut |_| ControlFlow::Continue(()));
        assert!(!read.unwrap().is_empty());
    }
}
