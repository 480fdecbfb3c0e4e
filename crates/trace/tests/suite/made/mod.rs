//! Small databases made for one test each.

use std::path::PathBuf;

use rusqlite::Connection;
use tempfile::TempDir;

/// A database from these statements, in a temporary folder that must be kept alive.
pub(crate) fn export(sql: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    // Each of these has a meaning in a URI, and is allowed in file names on any system.
    let path = folder.path().join("made with a space, 50%3F#.sqlite");
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    (folder, path)
}

/// Two processes that both call their GPU device 0 and launch with the same correlation at about the same time.
pub(crate) fn two_processes() -> (TempDir, PathBuf) {
    export(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
         INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaLaunchKernel_v7000');
         CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT);
         INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H200'), (1, 'NVIDIA H200');
         CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INT, cudaId INT, pid INT);
         INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0, 0, 100), (1, 0, 200);
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT, streamId INT,
            correlationId INT, globalPid INT, demangledName INT, shortName INT);
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
            (2000, 9000, 0, 1, 7, 5, 281474976710656 + (100 << 24), 1, 1),
            (2100, 9100, 0, 1, 7, 5, 281474976710656 + (200 << 24), 1, 1);
         CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId INT);
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES
            (1000, 1500, 281474976710656 + (100 << 24) + 101, 5, 2),
            (1100, 1600, 281474976710656 + (200 << 24) + 201, 5, 2);",
    )
}
