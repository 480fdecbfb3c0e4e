//! Synthetic traces of ranks: every figure that a test expects follows from these numbers.

use std::fmt::Write;

/// What one rank does in each step of 100 ms: copy, compute, communicate, in sequence. Communication takes the rest of
/// the step, as it does if all ranks wait for the last one.
#[derive(Debug, Clone)]
pub(crate) struct MadeRank {
    pub(crate) rank: u32,
    pub(crate) world: u32,
    /// The device number in its process.
    pub(crate) device: u32,
    /// Number of GPUs listed in its trace.
    pub(crate) gpus: u32,
    pub(crate) memory: &'static str,
    pub(crate) copy_ms: u32,
    pub(crate) copy_bytes: u64,
    pub(crate) kernels: u32,
    pub(crate) kernel_ms: u32,
    /// Whether the rest of the step is communication; otherwise the step is as long as its work.
    pub(crate) communicates: bool,
}

impl MadeRank {
    /// 20 ms of copies at 50 GB/s, 30 ms of kernels, 50 ms of communication.
    pub(crate) fn usual(rank: u32, world: u32) -> Self {
        Self {
            rank,
            world,
            device: rank,
            gpus: world,
            memory: "Pinned",
            copy_ms: 20,
            copy_bytes: 1_000_000_000,
            kernels: 10,
            kernel_ms: 3,
            communicates: true,
        }
    }

    /// Its trace, as torch.profiler would write it.
    pub(crate) fn trace(&self) -> String {
        let mut text = format!(
            r#"{{"schemaVersion": 1, "distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": {}}}, "deviceProperties": ["#,
            self.rank, self.world
        );
        let gpus: Vec<String> =
            (0..self.gpus).map(|id| format!(r#"{{"id": {id}, "name": "NVIDIA H200"}}"#)).collect();
        let _ = write!(text, r#"{}], "traceEvents": ["#, gpus.join(", "));
        let mut events = Vec::new();
        let own_ms = self.copy_ms + self.kernels * self.kernel_ms;
        let step_ms = if self.communicates { 100 } else { own_ms };
        let mut correlation = 0;
        for step in 0..4 {
            // The clocks of ranks are hours outliers.
            let mut at = 1_000_000 + 3_600_000_000 * u64::from(self.rank) + u64::from(step * step_ms) * 1000;
            let length = step_ms * 1000;
            events.push(format!(
                r#"{{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": {at}, "dur": {length}}}"#
            ));
            let mut launched = at;
            let mut work = |cat: &str, name: &str, call: &str, stream: u32, ms: u32, more: &str| {
                correlation += 1;
                events.push(format!(
                    r#"{{"ph": "X", "cat": "cuda_runtime", "name": "{call}", "pid": 1, "tid": 1, "ts": {launched}, "dur": 1, "args": {{"correlation": {correlation}}}}}"#
                ));
                events.push(format!(
                    r#"{{"ph": "X", "cat": "{cat}", "name": "{name}", "pid": {device}, "tid": {stream}, "ts": {at}, "dur": {dur}, "args": {{"device": {device}, "stream": {stream}, "correlation": {correlation}{more}}}}}"#,
                    device = self.device,
                    dur = ms * 1000,
                ));
                launched += 2;
                at += u64::from(ms) * 1000;
            };
            let copy = format!("Memcpy HtoD ({} -> Device)", self.memory);
            let bytes = format!(r#", "bytes": {}"#, self.copy_bytes);
            work("gpu_memcpy", &copy, "cudaMemcpyAsync", 20, self.copy_ms, &bytes);
            for _ in 0..self.kernels {
                work("kernel", "gemm", "cudaLaunchKernel", 7, self.kernel_ms, "");
            }
            if self.communicates {
                work("kernel", "ncclDevKernel_AllReduce", "cudaLaunchKernel", 30, step_ms - own_ms, "");
            }
        }
        text.push_str(&events.join(", "));
        text.push_str("]}");
        text
    }
}
