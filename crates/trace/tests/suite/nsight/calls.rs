//! Calls as exports have them: twice for one call, and calls of system libraries.

use super::{of_kind, read_file};
use crate::made::export;
use busbound_trace::EventKind;

const NAMES: &str = "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
    INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaLaunchKernel'), (3, 'cudaLaunchKernel_v7000'), (4, 'getc'), (5, 'poll');
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT,
        globalPid INT, demangledName INT, shortName INT);
    CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId INT);
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (2000, 9000, 0, 1, 7, 5, 1 << 24, 1, 1), (12000, 19000, 0, 1, 7, 6, 1 << 24, 1, 1);";
const THREAD: &str = "(1 << 24) + 1";

/// An export of an MPI program had each call as the program called it and as the library exports it. "20 GPU events have a correlation ID that several
/// calls have", and pinning was predicted to make 1.10 s of host work 143 ms.
#[test]
fn a_call_inside_the_same_call_is_one_call() {
    let (_kept, path) = export(&format!(
        "{NAMES} INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES
            (1000, 1500, {THREAD}, 5, 2), (1010, 1490, {THREAD}, 5, 3),
            (11000, 11500, {THREAD}, 6, 2), (11010, 11490, {THREAD}, 6, 3);"
    ));
    let trace = read_file(&path);
    let calls = of_kind(&trace, EventKind::RuntimeCall);
    let names: Vec<&str> = calls.iter().map(|call| call.name()).collect();
    assert_eq!(names, ["cudaLaunchKernel", "cudaLaunchKernel"]);
    assert_eq!(trace.stats().not_kept["calls inside the same call"], 2);
}

#[test]
fn long_calls_of_system_libraries_are_those_of_threads_that_use_cuda() {
    let (_kept, path) = export(&format!(
        "{NAMES} INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1000, 1500, {THREAD}, 5, 3), (11000, 11500, {THREAD}, 6, 3);
         CREATE TABLE OSRT_API (start INT, end INT, globalTid INT, nameId INT, nestingLevel INT);
         INSERT INTO OSRT_API VALUES
            (100000, 400000, {THREAD}, 4, 0),
            (110000, 390000, {THREAD}, 5, 1),
            (500000, 500900, {THREAD}, 5, 0),
            (100000, 400000, (1 << 24) + 2, 5, 0);
         CREATE TABLE SAMPLING_CALLCHAINS (id INT, symbol INT);"
    ));
    let trace = read_file(&path);
    let calls: Vec<(&str, i64)> = trace
        .os_calls()
        .iter()
        .map(|call| (trace.names().get(call.name), call.interval.length().get()))
        .collect();
    assert_eq!(calls, [("getc", 300_000)]);
    let settings = &trace.origin().settings;
    assert_eq!((settings.get("os_runtime"), settings.get("cpu_samples")), (Some(&true), None));
    assert!(!trace.stats().not_kept.contains_key("rows of OSRT_API"), "{:?}", trace.stats().not_kept);
}

/// "Record with nsys profile --trace=cuda,nvtx", which was how it had been recorded.
#[test]
fn why_nsight_recorded_no_gpu_is_known() {
    let (_kept, path) = export(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
         CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId INT);
         INSERT INTO StringIds VALUES (1, 'cudaFree_v3020');
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1000, 1500, 16777217, 5, 1);
         CREATE TABLE DIAGNOSTIC_EVENT (timestamp INT, timestampType INT, source INT, severity INT, text TEXT, globalPid INT);
         INSERT INTO DIAGNOSTIC_EVENT VALUES
            (1, 1, 1, 2, 'No CUDA events collected. Does the process use CUDA?', 0),
            (2, 1, 1, 2, 'Installed CUDA driver version (13.1) is not supported by this build of Nsight Systems.', 0);",
    );
    let trace = read_file(&path);
    let why = trace.origin().why_no_gpu();
    assert_eq!(
        why,
        Some("Installed CUDA driver version (13.1) is not supported by this build of Nsight Systems.")
    );
}
