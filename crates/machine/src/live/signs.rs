//! Which warning signs does a series of snapshots show? Each with its evidence; a single interval proves nothing.

use std::collections::{BTreeMap, VecDeque};

use super::heartbeat::{Beat, Training};
use super::sign::{Sign, SignKind};
use super::snapshot::{GpuNow, MemoryNow, Snapshot, ToWhere};
use crate::median;

/// The thresholds for warnings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// How long a condition has to last.
    pub patience_s: f64,
    /// A GPU busy for less than this share of the time…
    pub busy_below_percent: f64,
    /// …while more than this share of its memory is in use.
    pub memory_above: f64,
    /// Share of the bus peak.
    pub bus_share: f64,
    /// The time after which the training's watchdog ends the run.
    pub watchdog_s: f64,
    /// The share of that time that a step may take.
    pub watchdog_share: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            patience_s: 10.0,
            busy_below_percent: 50.0,
            memory_above: 0.9,
            bus_share: 0.7,
            watchdog_s: 600.0,
            watchdog_share: 0.5,
        }
    }
}

/// Steps of one batch size that are compared at each end.
const STEPS_COMPARED: usize = 5;
/// Steps of one batch size before its first and last steps are compared.
const ENOUGH_STEPS: usize = 15;
/// Normal variation of step times.
const SCATTER_OF_STEPS: f64 = 1.1;
/// At the same batch size, steps may become this much slower.
const SLOWER_OVER_TIME: f64 = 1.25;
/// Batch sizes that are tracked; a run that pads to every length has many of them.
const MOST_SIZES: usize = 64;
/// How long an alarm is shown after its last line.
const ALARM_STAYS_S: f64 = 300.0;

/// Looks at a series of snapshots.
#[derive(Debug, Clone)]
pub struct Watch {
    limits: Limits,
    gpus: BTreeMap<u32, GpuWatch>,
    files: BTreeMap<String, FileWatch>,
}

#[derive(Debug, Clone, Copy, Default)]
struct GpuWatch {
    starved: Lasting,
    to_device: Lasting,
    to_host: Lasting,
}

/// How long a condition has lasted, and the mean of a figure in that time.
#[derive(Debug, Clone, Copy, Default)]
struct Lasting {
    seconds: f64,
    weighted: f64,
}

impl Lasting {
    fn see(&mut self, figure: Option<f64>, seconds: f64) {
        match figure {
            Some(figure) => {
                self.seconds += seconds;
                self.weighted += figure * seconds;
            }
            None => *self = Self::default(),
        }
    }

    fn mean(self) -> f64 {
        self.weighted / self.seconds.max(f64::MIN_POSITIVE)
    }
}

#[derive(Debug, Clone, Default)]
struct FileWatch {
    last: Option<Beat>,
    silent_s: f64,
    sizes: Vec<SizeWatch>,
    alarms: u64,
    last_alarm: String,
    calm_s: f64,
}

/// Steps of one batch size.
#[derive(Debug, Clone)]
struct SizeWatch {
    batch: Option<f64>,
    steps: usize,
    first_s: Vec<f64>,
    last_s: VecDeque<f64>,
}

impl Watch {
    pub fn with(limits: Limits) -> Self {
        Self { limits, gpus: BTreeMap::new(), files: BTreeMap::new() }
    }

    /// The warning signs after this interval.
    pub fn see(&mut self, snapshot: &Snapshot) -> Vec<Sign> {
        let seconds = snapshot.interval_s;
        let mut signs = Vec::new();
        for file in self.files.values_mut() {
            file.silent_s += seconds;
            file.calm_s += seconds;
        }
        for training in &snapshot.training {
            self.files.entry(training.file.clone()).or_default().see(training);
        }
        for gpu in &snapshot.gpus {
            let watch = self.gpus.entry(gpu.index).or_default();
            watch.see(gpu, seconds, &self.limits);
            signs.extend(watch.signs(gpu, &self.limits));
        }
        for (name, file) in &self.files {
            signs.extend(file.signs(name, &self.limits));
        }
        signs
    }
}

impl GpuWatch {
    fn see(&mut self, gpu: &GpuNow, seconds: f64, limits: &Limits) {
        let busy = gpu.gpu_busy_percent.map(f64::from);
        let is_full = gpu.memory.is_some_and(|memory| memory.used_share() > limits.memory_above);
        self.starved.see(busy.filter(|busy| is_full && *busy < limits.busy_below_percent), seconds);
        let high = |share: Option<f64>| share.filter(|share| *share >= limits.bus_share);
        self.to_device.see(high(gpu.bus.to_device_share), seconds);
        self.to_host.see(high(gpu.bus.to_host_share), seconds);
    }

    fn signs(&self, gpu: &GpuNow, limits: &Limits) -> Vec<Sign> {
        let mut signs = Vec::new();
        let sign = |id, statement, evidence, next: &str| Sign {
            id,
            gpu: Some(gpu.index),
            file: None,
            statement,
            evidence,
            next: next.to_owned(),
        };
        if let Some(lost) = gpu.lost {
            // What was seen of it before says nothing now.
            return vec![sign(
                SignKind::GpuLost,
                format!("GPU {} is lost", gpu.index),
                lost.describe().to_owned(),
                "check dmesg for Xid messages (79: the GPU has fallen off the bus), reset the GPU or reboot the node, then \
                 restart `busbound top`",
            )];
        }
        if self.starved.seconds >= limits.patience_s {
            let memory = gpu.memory.unwrap_or(MemoryNow { used_bytes: 0, total_bytes: 0 });
            signs.push(sign(
                SignKind::IdleWithFullMemory,
                format!(
                    "GPU {} is less than {:.0}% busy and its memory is full",
                    gpu.index, limits.busy_below_percent
                ),
                format!(
                    "for {:.0} s it was busy {:.0}% of the time, with {:.1} of {:.1} GB in use",
                    self.starved.seconds,
                    self.starved.mean(),
                    memory.used_bytes as f64 / 1e9,
                    memory.total_bytes as f64 / 1e9
                ),
                "the GPU is waiting: record a trace and run `busbound diagnose` on it to see for what",
            ));
        }
        for (lasting, to) in [(self.to_device, ToWhere::Device), (self.to_host, ToWhere::Host)] {
            let Some(peak) = gpu.bus.peak.as_ref().filter(|_| lasting.seconds >= limits.patience_s) else {
                continue;
            };
            signs.push(sign(
                SignKind::BusNearPeak,
                format!("GPU {}: bus traffic {} is near the peak", gpu.index, to.word()),
                format!(
                    "for {:.0} s it carried {:.1} GB/s, {:.0}% of the {:.1} GB/s {}",
                    lasting.seconds,
                    lasting.mean() * peak.gbps(to),
                    lasting.mean() * 100.0,
                    peak.gbps(to),
                    peak.source.word()
                ),
                "copy less, or copy earlier: run `busbound whatif` on a trace to see what each change saves",
            ));
        }
        signs
    }
}

impl FileWatch {
    fn see(&mut self, training: &Training) {
        for beat in &training.beats {
            self.last = Some(*beat);
            self.silent_s = 0.0;
            if let Some(seconds) = beat.dt_step_s {
                self.size(beat.batch).see(seconds);
            }
        }
        if let Some(last) = training.alarms.last() {
            self.alarms += training.alarms.len() as u64;
            self.last_alarm.clone_from(last);
            self.calm_s = 0.0;
        }
    }

    fn size(&mut self, batch: Option<f64>) -> &mut SizeWatch {
        let at = self.sizes.iter().position(|size| size.batch == batch).unwrap_or_else(|| {
            if self.sizes.len() == MOST_SIZES {
                self.sizes.remove(0);
            }
            self.sizes.push(SizeWatch { batch, steps: 0, first_s: Vec::new(), last_s: VecDeque::new() });
            self.sizes.len() - 1
        });
        &mut self.sizes[at]
    }

    fn signs(&self, name: &str, limits: &Limits) -> Vec<Sign> {
        let sign = |id, statement: String, evidence, next: &str| Sign {
            id,
            gpu: None,
            file: Some(name.to_owned()),
            statement,
            evidence,
            next: next.to_owned(),
        };
        let mut signs = Vec::new();
        if let Some((statement, evidence)) = self.outgrown() {
            let next = "compare traces of both batch sizes with `busbound compare --label batch=…`";
            signs.push(sign(SignKind::StepsOutgrowBatch, statement, evidence, next));
        }
        let limit_s = limits.watchdog_share * limits.watchdog_s;
        let step_s = self.last.and_then(|beat| beat.dt_step_s).unwrap_or(0.0);
        if let Some((what, seconds)) = [("the last step took", step_s), ("no heartbeat for", self.silent_s)]
            .into_iter()
            .find(|(_, seconds)| self.last.is_some() && *seconds > limit_s)
        {
            signs.push(sign(
                SignKind::NearWatchdog,
                "Steps are close to the watchdog timeout".to_owned(),
                format!(
                    "{what} {seconds:.0} s, {:.0}% of the {:.0} s after which the watchdog ends the run",
                    100.0 * seconds / limits.watchdog_s,
                    limits.watchdog_s
                ),
                "find what became slower before raising the timeout (set it with --watchdog)",
            ));
        }
        if self.alarms > 0 && self.calm_s < ALARM_STAYS_S {
            let lines = if self.alarms == 1 { "1 line".to_owned() } else { format!("{} lines", self.alarms) };
            signs.push(sign(
                SignKind::CollectiveTrouble,
                "The log reports problems with collectives".to_owned(),
                format!("{lines}; the last one: {}", self.last_alarm),
                "one rank is late or gone: find the rank that stopped first, and run `busbound topo` there",
            ));
        }
        signs
    }

    /// Steps that became slower than the batch size explains.
    fn outgrown(&self) -> Option<(String, String)> {
        let current = self.sizes.iter().find(|size| size.batch == self.last.and_then(|beat| beat.batch))?;
        let now_s = usual_s(current.last_s.iter().copied())?;
        if let Some(batch) = current.batch
            && current.steps >= STEPS_COMPARED
        {
            let known = self.sizes.iter().filter(|size| size.steps >= STEPS_COMPARED);
            let known = known.filter_map(|size| Some((size.batch?, usual_s(size.last_s.iter().copied())?)));
            let smaller = known
                .filter(|(before, _)| *before > 0.0 && *before < batch)
                .max_by(|a, b| a.0.total_cmp(&b.0));
            if let Some((before, before_s)) = smaller
                && now_s / before_s > SCATTER_OF_STEPS * batch / before
            {
                return Some((
                    "Step time grows faster than the batch size".to_owned(),
                    format!(
                        "batch {before} → {batch} ({:.2}x), step {before_s:.2} s → {now_s:.2} s ({:.2}x)",
                        batch / before,
                        now_s / before_s
                    ),
                ));
            }
        }
        let first_s = usual_s(current.first_s.iter().copied())?;
        (current.steps >= ENOUGH_STEPS && now_s > SLOWER_OVER_TIME * first_s).then(|| {
            let batch = current.batch.map_or("batch unknown".to_owned(), |batch| format!("batch {batch}"));
            (
                "Steps are getting slower".to_owned(),
                format!(
                    "{batch}: {first_s:.2} s → {now_s:.2} s ({:.2}x) within {} steps",
                    now_s / first_s,
                    current.steps
                ),
            )
        })
    }
}

impl SizeWatch {
    fn see(&mut self, seconds: f64) {
        self.steps += 1;
        if self.first_s.len() < STEPS_COMPARED {
            self.first_s.push(seconds);
        }
        self.last_s.push_back(seconds);
        if self.last_s.len() > STEPS_COMPARED {
            self.last_s.pop_front();
        }
    }
}

/// The median step time, if above zero.
fn usual_s(seconds: impl Iterator<Item = f64>) -> Option<f64> {
    median(seconds).filter(|seconds| *seconds > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{BusPeak, GpuLost, PeakSource};

    fn gpu(busy: u32, memory_used: u64, share: Option<f64>) -> GpuNow {
        let mut gpu = GpuNow { gpu_busy_percent: Some(busy), ..GpuNow::default() };
        gpu.memory = Some(MemoryNow { used_bytes: memory_used, total_bytes: 100_000_000_000 });
        gpu.bus.to_device_share = share;
        gpu.bus.peak =
            Some(BusPeak { to_device_gbps: 60.0, to_host_gbps: 60.0, source: PeakSource::Measured });
        gpu
    }

    fn snapshot(gpu: GpuNow, beats: &[(Option<f64>, f64)], alarms: &[&str]) -> Snapshot {
        let mut snapshot = Snapshot::new(String::new(), 1.0, vec![gpu]);
        let beats = beats.iter().map(|(batch, seconds)| Beat {
            dt_step_s: Some(*seconds),
            batch: *batch,
            ..Beat::default()
        });
        snapshot.training.push(Training {
            file: "rank0.jsonl".to_owned(),
            beats: beats.collect(),
            alarms: alarms.iter().map(|line| (*line).to_owned()).collect(),
        });
        snapshot
    }

    /// The signs after each of these snapshots.
    fn kinds(snapshots: impl IntoIterator<Item = Snapshot>) -> Vec<Vec<SignKind>> {
        let mut watch = Watch::with(Limits::default());
        snapshots.into_iter().map(|one| watch.see(&one).iter().map(|sign| sign.id).collect()).collect()
    }

    const FULL: u64 = 95_000_000_000;

    #[test]
    fn a_starved_gpu_is_reported_only_after_a_while() {
        let starved = || snapshot(gpu(30, FULL, None), &[], &[]);
        let seen = kinds(std::iter::repeat_with(starved).take(10));
        assert!(seen[..9].iter().all(Vec::is_empty));
        assert_eq!(seen[9], [SignKind::IdleWithFullMemory]);
        // One busy interval restarts the count, and free memory prevents the sign.
        let busy = (0..25).map(|i| snapshot(gpu(if i % 9 == 8 { 90 } else { 30 }, FULL, None), &[], &[]));
        assert!(kinds(busy).iter().all(Vec::is_empty));
        let spare = std::iter::repeat_with(|| snapshot(gpu(30, FULL / 2, None), &[], &[]));
        assert!(kinds(spare.take(25)).iter().all(Vec::is_empty));
    }

    #[test]
    fn a_lost_gpu_is_reported_immediately_and_its_past_is_forgotten() {
        let mut watch = Watch::with(Limits::default());
        for _ in 0..12 {
            watch.see(&snapshot(gpu(30, FULL, None), &[], &[]));
        }
        let lost = GpuNow { lost: Some(GpuLost::GpuIsLost), ..GpuNow::default() };
        let signs = watch.see(&snapshot(lost, &[], &[]));
        assert_eq!(
            signs.iter().map(|sign| (sign.id, sign.gpu)).collect::<Vec<_>>(),
            [(SignKind::GpuLost, Some(0))]
        );
        assert!(signs[0].next.contains("Xid") && signs[0].next.contains("reset"), "{}", signs[0].next);
        assert!(watch.see(&snapshot(gpu(30, FULL, None), &[], &[])).is_empty());
    }

    #[test]
    fn sustained_traffic_is_reported_with_its_mean_and_an_unknown_interval_ends_it() {
        let mut watch = Watch::with(Limits::default());
        let mut signs = Vec::new();
        for i in 0..12 {
            let share = if i % 2 == 0 { 0.9 } else { 1.0 };
            signs = watch.see(&snapshot(gpu(99, 0, Some(share)), &[], &[]));
        }
        assert_eq!(signs[0].evidence, "for 12 s it carried 57.0 GB/s, 95% of the 60.0 GB/s measured");
        assert_eq!((signs[0].id, signs[0].gpu), (SignKind::BusNearPeak, Some(0)));
        assert!(watch.see(&snapshot(gpu(99, 0, None), &[], &[])).is_empty());
        assert!(watch.see(&snapshot(gpu(99, 0, Some(0.99)), &[], &[])).is_empty());
    }

    #[test]
    fn steps_may_grow_with_the_batch_but_not_faster() {
        let run = |larger_s: f64| {
            let mut beats = vec![(Some(2.0), 1.0); 5];
            beats.extend(vec![(Some(4.0), larger_s); 5]);
            kinds([snapshot(gpu(99, 0, None), &beats, &[])]).remove(0)
        };
        assert_eq!(run(2.1), []);
        assert_eq!(run(3.0), [SignKind::StepsOutgrowBatch]);
        let mut watch = Watch::with(Limits::default());
        let beats: Vec<_> = (0..20).map(|i| (None, 1.0 + 0.05 * f64::from(i))).collect();
        let signs = watch.see(&snapshot(gpu(99, 0, None), &beats, &[]));
        assert_eq!(signs[0].evidence, "batch unknown: 1.10 s → 1.85 s (1.68x) within 20 steps");
    }

    #[test]
    fn long_steps_and_silence_approach_the_watchdog_timeout() {
        let long = snapshot(gpu(99, 0, None), &[(None, 301.0)], &[]);
        assert_eq!(kinds([long]), [[SignKind::NearWatchdog]]);
        let begin = snapshot(gpu(99, 0, None), &[(None, 3.0)], &[]);
        let silent = std::iter::repeat_with(|| snapshot(gpu(99, 0, None), &[], &[])).take(301);
        let seen = kinds(std::iter::once(begin).chain(silent));
        assert!(seen[..=300].iter().all(Vec::is_empty));
        assert_eq!(seen[301], [SignKind::NearWatchdog]);
    }

    #[test]
    fn alarms_are_counted_and_fade() {
        let mut watch = Watch::with(Limits::default());
        let line = "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=91)";
        watch.see(&snapshot(gpu(99, 0, None), &[], &["NCCL WARN x", line]));
        let signs = watch.see(&snapshot(gpu(99, 0, None), &[], &[]));
        assert_eq!(signs[0].evidence, format!("2 lines; the last one: {line}"));
        let calm = std::iter::repeat_with(|| snapshot(gpu(99, 0, None), &[], &[])).take(300);
        assert!(calm.map(|one| watch.see(&one)).last().is_some_and(|signs| signs.is_empty()));
    }
}
