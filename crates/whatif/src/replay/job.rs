//! How long would a step of the job take with a change on one rank? Replays all ranks together: each collective waits for the
//! last one.

use std::collections::BTreeMap;

use busbound_cause::{JoinedRank, Model, Time, WorkId, simulate};
use busbound_trace::EventId;

use super::assumed::Assumed;
use super::{Change, LEAST_RANGE, LEAST_SPREAD, MOST_ERROR, Predicted, Replay, usual_sharing};

/// One rank of a job.
#[derive(Debug)]
pub struct JobRank {
    pub replay: Replay,
    /// Its collectives, each with a key that is the same on all ranks.
    pub collectives: Vec<(EventId, u64)>,
    /// Milliseconds of its step as recorded.
    pub recorded_ms: f64,
}

/// The ranks of a job, ready to replay together.
#[derive(Debug)]
pub struct Job {
    ranks: Vec<JobRank>,
    /// How long each collective takes once all ranks have arrived.
    transfer: BTreeMap<u64, Time>,
    /// Nanoseconds of the step without changes.
    unchanged: f64,
    error: f64,
}

/// Why ranks cannot be replayed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoJob {
    #[error("give the traces of at least two ranks")]
    OneRank,
    #[error(
        "the traces do not say which collectives of the ranks are the same: record them with a PyTorch that writes their messages, and number the steps (ProfilerStep#12)"
    )]
    NoCollectives,
    #[error("the traces of the ranks do not cover the same steps")]
    OtherSteps,
    #[error("the replay of all ranks together does not reproduce the recorded step")]
    NotReproduced,
}

/// Fewer collectives in common, as a share of those of a rank, mean that the traces are of different steps.
const COMMON: f64 = 0.8;

impl Job {
    /// # Errors
    /// If the ranks cannot be replayed together, with the reason.
    pub fn of(ranks: Vec<JobRank>) -> Result<Self, NoJob> {
        if ranks.len() < 2 {
            return Err(NoJob::OneRank);
        }
        let transfer = transfers(&ranks);
        if transfer.is_empty() {
            return Err(NoJob::NoCollectives);
        }
        let in_common = |rank: &JobRank| {
            let own = placed(rank.replay.models.as_recorded(), &rank.collectives);
            let common = own.iter().filter(|(key, _)| transfer.contains_key(key)).count();
            common as f64 >= COMMON * own.len() as f64
        };
        let steps = |rank: &JobRank| rank.replay.models.as_recorded().steps;
        if !ranks.iter().all(in_common) || ranks.iter().any(|rank| steps(rank) != steps(&ranks[0])) {
            return Err(NoJob::OtherSteps);
        }
        let mut job = Self { ranks, transfer, unchanged: 0.0, error: 0.0 };
        let models =
            |of: fn(&Replay) -> &Model| job.ranks.iter().map(|rank| of(&rank.replay)).collect::<Vec<_>>();
        let recorded =
            job.step_of(&models(|replay| replay.models.as_recorded())).ok_or(NoJob::NotReproduced)?;
        let unchanged =
            job.step_of(&models(|replay| replay.models.expected())).ok_or(NoJob::NotReproduced)?;
        let measured = job.ranks.iter().map(|rank| rank.recorded_ms).fold(0.0, f64::max);
        let error = recorded / 1e6 / measured - 1.0;
        if error.abs() >= MOST_ERROR {
            return Err(NoJob::NotReproduced);
        }
        (job.unchanged, job.error) = (unchanged, error);
        Ok(job)
    }

    /// Milliseconds of a step of the job, without the profiler where that is known.
    pub fn step_ms(&self) -> f64 {
        self.unchanged / 1e6 / (1.0 + self.error)
    }

    /// Replay error: the relative difference of the unchanged replay from the traces.
    pub fn error(&self) -> f64 {
        self.error
    }

    pub fn ranks(&self) -> &[JobRank] {
        &self.ranks
    }

    /// The predicted step of the job with these changes on one rank, given by its position.
    pub fn predict(&self, rank: usize, changes: &[Change]) -> Predicted {
        let [expected, best, worst] = [Assumed::EXPECTED, Assumed::BEST, Assumed::WORST]
            .map(|assumed| self.with_changes(rank, changes, assumed));
        let alone = self.ranks[rank].replay.predict(changes);
        let confidence = self.ranks[rank].replay.confidence();
        let spread =
            self.error.abs() + LEAST_SPREAD + 0.25 * (confidence.unexplained + confidence.without_call);
        let (best_ms, worst_ms) = (best.min(expected), worst.max(expected));
        Predicted {
            step_ms: expected,
            low_ms: (best_ms * (1.0 - spread)).min(expected * (1.0 - LEAST_RANGE)),
            high_ms: (worst_ms * (1.0 + spread)).max(expected * (1.0 + LEAST_RANGE)),
            best_ms,
            worst_ms,
            ..alone
        }
    }

    /// Milliseconds.
    fn with_changes(&self, rank: usize, changes: &[Change], assumed: Assumed) -> f64 {
        let mut changed = Model::default();
        self.ranks[rank].replay.edit(&mut changed, changes, assumed);
        let models: Vec<&Model> = self
            .ranks
            .iter()
            .enumerate()
            .map(|(i, one)| if i == rank { &changed } else { one.replay.models.of(assumed.recording) })
            .collect();
        // If the change leaves work undone, no prediction is possible.
        self.step_of(&models).unwrap_or(self.unchanged) / 1e6 / (1.0 + self.error)
    }

    /// Nanoseconds of the mean step; `None` if ranks wait for each other in a circle.
    fn step_of(&self, models: &[&Model]) -> Option<f64> {
        let collectives: Vec<Vec<(u64, WorkId)>> =
            models.iter().zip(&self.ranks).map(|(model, rank)| placed(model, &rank.collectives)).collect();
        let joined: Vec<JoinedRank<'_>> = models
            .iter()
            .zip(&collectives)
            .map(|(model, collectives)| JoinedRank { model, collectives })
            .collect();
        let sharing = usual_sharing(&self.ranks[0].replay.link);
        let simulated = simulate(&Model::joined(&joined, &self.transfer), &sharing);
        simulated.complete.then(|| simulated.step())
    }
}

/// Where the collectives are in a model.
fn placed(model: &Model, collectives: &[(EventId, u64)]) -> Vec<(u64, WorkId)> {
    let keys: BTreeMap<EventId, u64> = collectives.iter().copied().collect();
    let work = model.work.iter().enumerate();
    work.filter_map(|(id, work)| Some((*keys.get(&work.event)?, id))).collect()
}

/// The shortest time of each collective on any rank: that of the last to arrive.
fn transfers(ranks: &[JobRank]) -> BTreeMap<u64, Time> {
    let mut times: BTreeMap<u64, (usize, Time)> = BTreeMap::new();
    for rank in ranks {
        let model = rank.replay.models.as_recorded();
        for (key, id) in placed(model, &rank.collectives) {
            let time = model.work[id].end - model.work[id].start;
            let (count, least) = times.entry(key).or_insert((0, time));
            *count += 1;
            *least = time.min(*least);
        }
    }
    times.into_iter().filter(|(_, (count, _))| *count > 1).map(|(key, (_, time))| (key, time)).collect()
}
