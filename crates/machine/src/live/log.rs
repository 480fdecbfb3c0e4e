//! What did `--log` save? Snapshots as JSON lines; the last line may be half written.

use super::snapshot::{Snapshot, TOP_SCHEMA};

/// The snapshots of a log, and the number of unreadable lines.
#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    pub snapshots: Vec<Snapshot>,
    pub unread_lines: usize,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    #[error("contains no `busbound top` snapshot")]
    Empty,
    #[error("has schema {0:?}, not {TOP_SCHEMA:?}")]
    Schema(String),
    #[error(
        "is damaged, or not a log of `busbound top`: record it again with `busbound top --log FILE` ({0})"
    )]
    Json(serde_json::Error),
}

impl Log {
    /// Reads every readable line.
    ///
    /// # Errors
    /// If no line is readable, with the reason for the first one.
    pub fn parse(text: &str) -> Result<Self, LogError> {
        let mut log = Self { snapshots: Vec::new(), unread_lines: 0 };
        let mut first_error = None;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match serde_json::from_str::<Snapshot>(line) {
                Ok(mut snapshot) if snapshot.schema == TOP_SCHEMA => {
                    snapshot.gpus.iter_mut().for_each(|gpu| gpu.bus.complete());
                    log.snapshots.push(snapshot);
                }
                other => {
                    log.unread_lines += 1;
                    let error = match other {
                        Ok(snapshot) => LogError::Schema(snapshot.schema),
                        Err(error) => LogError::Json(error),
                    };
                    first_error.get_or_insert(error);
                }
            }
        }
        if log.snapshots.is_empty() { Err(first_error.unwrap_or(LogError::Empty)) } else { Ok(log) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{GpuNow, MemoryNow, NvLinksNow, ProcessNow};

    fn snapshot(index: u32) -> Snapshot {
        let mut gpu = GpuNow { index, name: Some("NVIDIA H200".to_owned()), ..GpuNow::default() };
        gpu.bus.to_device_bytes_per_s = Some(54_321_098_765.432);
        gpu.bus.complete();
        gpu.memory = Some(MemoryNow { used_bytes: 1, total_bytes: 2 });
        gpu.nvlinks =
            Some(NvLinksNow { active: 18, received_bytes_per_s: None, sent_bytes_per_s: Some(0.1) });
        gpu.processes = Some(vec![ProcessNow { pid: 7, name: None, memory_bytes: Some(3) }]);
        Snapshot::new("2026-11-15T12:00:00Z".to_owned(), 1.000_123, vec![gpu])
    }

    #[test]
    fn a_log_survives_a_round_trip_exactly() {
        let all = [snapshot(0), snapshot(1)];
        let text: String = all.iter().map(|one| serde_json::to_string(one).unwrap() + "\n").collect();
        let log = Log::parse(&text).unwrap();
        assert_eq!((log.snapshots.as_slice(), log.unread_lines), (all.as_slice(), 0));
        let again: String =
            log.snapshots.iter().map(|one| serde_json::to_string(one).unwrap() + "\n").collect();
        assert_eq!(again, text);
    }

    #[test]
    fn a_half_written_last_line_loses_only_that_line() {
        let line = serde_json::to_string(&snapshot(0)).unwrap();
        for cut in 1..line.len() {
            let log = Log::parse(&format!("{line}\n{}", &line[..cut])).unwrap();
            assert_eq!((log.snapshots.len(), log.unread_lines), (1, 1));
        }
    }

    #[test]
    fn other_files_are_refused_with_a_reason() {
        assert!(matches!(Log::parse("\n"), Err(LogError::Empty)));
        assert!(matches!(Log::parse("{\"step\": 1}"), Err(LogError::Json(_))));
        let other = serde_json::to_string(&snapshot(0)).unwrap().replace("busbound.top/1", "busbound.top/9");
        assert!(matches!(Log::parse(&other), Err(LogError::Schema(_))));
    }
}
