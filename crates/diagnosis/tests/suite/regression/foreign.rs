//! Are JSON files of other profilers named, with what to do?

use crate::common::diagnosis_of;

fn said_of(process: &str) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.json");
    let json = format!(
        r#"{{"traceEvents": [{{}},
            {{"ph": "M", "name": "process_name", "pid": 2, "args": {{"name": "{process}"}}}},
            {{"ph": "X", "name": "hipGetDevice", "pid": 2, "tid": 517, "ts": 773900799422, "dur": 1, "args": {{"stream-id": "1"}}}}]}}"#
    );
    std::fs::write(&path, json).unwrap();
    let run = diagnosis_of(&path);
    (run.verdict.statement, run.limitations.into_iter().map(|one| one.text).collect())
}

/// rocprof writes its copies and kernels as events without a category: "Record with profile(activities=…CUDA)", for a program in C++.
#[test]
fn files_of_other_profilers_are_named() {
    for (process, named, remedy) in [
        ("CPU HIP API", "a trace of rocprof", "torch.profiler"),
        ("Ascend Hardware", "a trace of Ascend NPUs", "only traces of CUDA"),
        ("/device:GPU:0", "a trace viewer file of JAX or TensorFlow", ".xplane.pb"),
    ] {
        let (first, said) = said_of(process);
        // The first line said "no GPU activity was recorded".
        assert!(first.contains(named) && first.contains("cannot be read"), "{process}: {first}");
        assert!(said.contains(named) && said.contains(remedy), "{process}: {said}");
    }
}
