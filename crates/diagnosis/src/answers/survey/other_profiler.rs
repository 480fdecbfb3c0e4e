//! Did another profiler write this JSON?

use busbound_trace::Trace;

/// Which other profiler wrote this JSON, by the names of its processes, and what to do.
pub(crate) fn other_profiler(trace: &Trace) -> Option<(&'static str, &'static str)> {
    const OTHERS: [(&str, &str, &str); 3] = [
        (
            "/device:",
            "a trace viewer file of JAX or TensorFlow",
            "pass the .xplane.pb next to it, which has streams, sizes and calls",
        ),
        (
            "Ascend Hardware",
            "a trace of Ascend NPUs",
            "none: only traces of CUDA, ROCm, XPU and MTIA are read",
        ),
        (
            "CPU HIP API",
            "a trace of rocprof",
            "record with torch.profiler, which has ROCm's copies and kernels too",
        ),
    ];
    let names: Vec<&str> =
        trace.threads().filter_map(|track| trace.given_name(track.place().process()?, None)).collect();
    let is = |(part, ..): &&(&str, &str, &str)| names.iter().any(|name| name.contains(part));
    OTHERS.iter().find(is).map(|(_, what, remedy)| (*what, *remedy))
}
