//! What was the traffic in the last minutes? One row of figures per GPU, oldest first.

use std::collections::VecDeque;

use super::snapshot::{Snapshot, ToWhere};

/// What is drawn for one GPU; `None` if an interval has no value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GpuHistory {
    pub to_device_bytes_per_s: VecDeque<Option<f64>>,
    pub to_host_bytes_per_s: VecDeque<Option<f64>>,
    pub gpu_busy_percent: VecDeque<Option<u32>>,
}

/// The last intervals of every GPU, by its index in the snapshots.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    most: usize,
    gpus: Vec<GpuHistory>,
}

impl History {
    /// Keeps at most this many intervals.
    pub fn of(most: usize) -> Self {
        Self { most, gpus: Vec::new() }
    }

    pub fn see(&mut self, snapshot: &Snapshot) {
        self.gpus.resize_with(self.gpus.len().max(snapshot.gpus.len()), GpuHistory::default);
        for (i, history) in self.gpus.iter_mut().enumerate() {
            // A GPU that is missing in an interval leaves a gap.
            let gpu = snapshot.gpus.get(i);
            push(
                &mut history.to_device_bytes_per_s,
                gpu.and_then(|gpu| gpu.bus.bytes_per_s(ToWhere::Device)),
                self.most,
            );
            push(
                &mut history.to_host_bytes_per_s,
                gpu.and_then(|gpu| gpu.bus.bytes_per_s(ToWhere::Host)),
                self.most,
            );
            push(&mut history.gpu_busy_percent, gpu.and_then(|gpu| gpu.gpu_busy_percent), self.most);
        }
    }

    pub fn gpu(&self, place: usize) -> Option<&GpuHistory> {
        self.gpus.get(place)
    }
}

fn push<T>(row: &mut VecDeque<Option<T>>, value: Option<T>, most: usize) {
    row.push_back(value);
    while row.len() > most {
        row.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::GpuNow;

    #[test]
    fn only_the_last_intervals_are_kept_and_gaps_stay_gaps() {
        let mut history = History::of(3);
        for rate in [Some(1.0), Some(2.0), None, Some(4.0)] {
            let mut gpu = GpuNow::default();
            gpu.bus.to_host_bytes_per_s = rate;
            history.see(&Snapshot::new(String::new(), 1.0, vec![gpu]));
        }
        let row = &history.gpu(0).unwrap().to_host_bytes_per_s;
        assert_eq!(row.iter().copied().collect::<Vec<_>>(), [Some(2.0), None, Some(4.0)]);
        assert!(history.gpu(1).is_none());
    }
}
