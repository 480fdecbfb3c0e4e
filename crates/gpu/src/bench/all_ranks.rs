//! How fast is an all-reduce over processes with one GPU each? Rank 0 asks all ranks for the same repetition, and the slowest one's time
//! counts. Before each repetition a small all-reduce brings all ranks to the same moment: what rank 0 asks arrives over the network,
//! at different times.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use busbound_machine::bench::{
    AllReduceCase, AllReduceTask, Limits, Mode, NodeSet, Processes, Samples, Suite, Task, limits, tasks,
};

use super::all_reduce::{IN_A_ROW, Part, is_sum, part};
use super::rig::host_ns;
use super::seat::Seat;
use super::{Progress, Request, check_environment, finish, nothing_yet};
use crate::driver::{CudaError, Gpu, gpus};
use crate::host;
use crate::nccl::{Nccl, NcclLibrary};
use crate::ranks::{Answer, Asked, Command, Launch, Party, RanksError, Seated, attend, gather, serve};
use crate::telemetry::Telemetry;

/// Measures all-reduces together with the other ranks of this launch. Only rank 0 has results. `within` is how long any rank waits for
/// another one.
///
/// # Errors
/// If any rank does not come, fails, or is gone; all others end then.
pub fn run_rank(
    request: &Request,
    launch: &Launch,
    within: Duration,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<Samples>, RanksError> {
    let began = Instant::now();
    check_environment()?;
    let (own, mode) = (launch.clone(), request.mode);
    let work = move |asked: &Asked<'_>| Rank::open(&own, mode)?.work(asked);
    if launch.rank > 0 {
        let root = attend(launch, within, stop)?;
        return serve(launch.rank, root, within, work).map(|()| None);
    }
    let others = gather(launch, within, stop)?;
    let mut party = Party::new(others, within, work);
    let meeting = meet(&mut party)?;
    let ordinal = ordinal_of(launch, gpus()?);
    let gpu = Gpu::open(ordinal)?;
    let address = gpu.pci_address()?;
    let identity = Seat::near(&address).identity(&gpu, gpus()?, Telemetry::of(&address).as_ref())?;
    let mut samples = nothing_yet(request, identity);
    measure_all(&mut party, &meeting, stop, &mut samples, progress)?;
    party.end();
    finish(&mut samples, began);
    Ok(Some(samples))
}

/// What all ranks together are.
struct Meeting {
    nodes: u32,
    largest: u64,
    library: String,
}

/// Brings all ranks together in one communicator.
fn meet(party: &mut Party) -> Result<Meeting, RanksError> {
    let seated = party.hear_all("it opened its GPU")?;
    let seated: Vec<Seated> = seated
        .into_iter()
        .zip(0..)
        .map(|(answer, rank)| match answer {
            Answer::Seated(seated) => Ok(seated),
            _ => Err(misunderstood(rank)),
        })
        .collect::<Result<_, _>>()?;
    check_seats(&seated)?;
    let Answer::Id(id) = party.ask(0, &Command::Invite, "it started NCCL")? else {
        return Err(misunderstood(0));
    };
    party.ask_all(&Command::Join(id), "NCCL connected the ranks")?;
    let mut nodes: Vec<&str> = seated.iter().map(|one| one.node.as_str()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    Ok(Meeting {
        nodes: nodes.len() as u32,
        largest: seated.iter().map(|one| one.largest).min().unwrap_or_default(),
        library: seated.first().map(|one| one.nccl.clone()).unwrap_or_default(),
    })
}

/// What NCCL would only fail at, or wait for without end.
fn check_seats(seated: &[Seated]) -> Result<(), RanksError> {
    for (rank, one) in (0u32..).zip(seated) {
        let same = |other: &&Seated| (&other.node, &other.gpu) == (&one.node, &one.gpu);
        let earlier = seated.iter().take(rank as usize).position(|other| same(&other));
        if let Some(other) = earlier {
            return Err(RanksError::SameGpu { ranks: (other as u32, rank) });
        }
        if one.nccl != seated[0].nccl {
            let (its, ours) = (one.nccl.clone(), seated[0].nccl.clone());
            return Err(RanksError::OtherNccl { rank, its, ours });
        }
    }
    Ok(())
}

fn misunderstood(rank: u32) -> RanksError {
    RanksError::Failed { rank, why: "it answered something else than it was asked".to_owned() }
}

fn measure_all(
    party: &mut Party,
    meeting: &Meeting,
    stop: &AtomicBool,
    samples: &mut Samples,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), RanksError> {
    let limits =
        Limits { gpus: party.size(), largest: meeting.largest, managed: false, nodes: NodeSet::EMPTY };
    let tasks = tasks(samples.mode, &[Suite::AllReduce], &limits);
    for (done, task) in tasks.iter().enumerate() {
        progress(Progress { done, of: tasks.len(), what: task.to_string() });
        let Task::AllReduce(task) = *task else { continue };
        let Some(ns) = measure(party, samples.mode, task, stop)? else {
            samples.interrupted = true;
            return Ok(());
        };
        let answers = party.ask_all(&Command::Check, "it compared the result")?;
        let verified = answers.iter().all(|answer| *answer == Answer::Verified(true));
        let processes = Processes::OnePerGpu { nodes: meeting.nodes };
        let (ranks, library) = (party.size(), meeting.library.clone());
        samples.cases.push(AllReduceCase { ranks, processes, task, ns, verified, library }.into());
    }
    Ok(())
}

/// The slowest rank's time of each repetition, after a warm-up; `None` if the user stopped it.
fn measure(
    party: &mut Party,
    mode: Mode,
    task: AllReduceTask,
    stop: &AtomicBool,
) -> Result<Option<Vec<u64>>, RanksError> {
    party.ask_all(&Command::Measure { bytes: task.bytes }, "it prepared its buffers")?;
    let mut once = || {
        let answers = party.ask_all(&Command::Go, "the all-reduce ran")?;
        slowest(&answers)
    };
    once()?;
    let mut times = Vec::new();
    while !mode.patience().is_over(&times) {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        times.push(once()?);
    }
    Ok(Some(times))
}

fn slowest(answers: &[Answer]) -> Result<u64, RanksError> {
    let mut slowest = 1;
    for (rank, answer) in (0..).zip(answers) {
        match answer {
            Answer::Ns(ns) => slowest = slowest.max(*ns),
            _ => return Err(misunderstood(rank)),
        }
    }
    Ok(slowest)
}

/// Which of the GPUs that this process sees is its own? With only one, a launcher has chosen it already.
fn ordinal_of(launch: &Launch, gpus: u32) -> u32 {
    if gpus == 1 { 0 } else { launch.local_rank.unwrap_or_default() }
}

/// One rank with its GPU, on the thread that uses it.
struct Rank {
    // In drop order: what is on the GPU before the GPU.
    part: Option<Part>,
    nccl: Option<Nccl>,
    gpu: Gpu,
    ordinal: u32,
    rank: u32,
    size: u32,
    library: NcclLibrary,
    seated: Seated,
}

impl Rank {
    fn open(launch: &Launch, mode: Mode) -> Result<Self, String> {
        let gpus = gpus().map_err(in_words)?;
        let ordinal = ordinal_of(launch, gpus);
        let gpu = Gpu::open(ordinal).map_err(in_words)?;
        // Before any allocation: NCCL's threads and memory follow this one.
        let _ = Seat::near(&gpu.pci_address().map_err(in_words)?);
        let library = NcclLibrary::load()?;
        let (free, _) = gpu.memory().map_err(in_words)?;
        let seated = Seated {
            node: host::node().split_whitespace().collect(),
            gpu: gpu.uuid().map_err(in_words)?,
            largest: limits((gpus, NodeSet::EMPTY), free, host::free_memory(), false, mode).largest,
            nccl: library.version()?,
        };
        let (rank, size) = (launch.rank, launch.size);
        Ok(Self { part: None, nccl: None, gpu, ordinal, rank, size, library, seated })
    }

    /// Answers until the end.
    fn work(mut self, asked: &Asked<'_>) -> Result<(), String> {
        asked.answer(Answer::Seated(self.seated.clone()));
        while let Some(command) = asked.next() {
            if matches!(command, Command::End | Command::GiveUp) {
                break;
            }
            asked.answer(self.answer(command)?);
        }
        Ok(())
    }

    fn answer(&mut self, command: Command) -> Result<Answer, String> {
        self.gpu.make_current().map_err(in_words)?;
        Ok(match command {
            Command::Invite => Answer::Id(self.library.unique_id()?),
            Command::Join(id) => {
                self.nccl = Some(self.library.join(&id, self.rank, self.size)?);
                Answer::Ready
            }
            Command::Measure { bytes } => {
                // The old one first: both together may not fit.
                self.part = None;
                self.part = Some(part(self.ordinal, self.rank, bytes).map_err(in_words)?);
                Answer::Ready
            }
            Command::Go => Answer::Ns(self.once()?),
            Command::Check => {
                let part = self.part.as_ref().ok_or(TOO_EARLY)?;
                Answer::Verified(is_sum(part, part.to.bytes(), self.size).map_err(in_words)?)
            }
            Command::End | Command::GiveUp => Answer::Ready,
        })
    }

    /// Like nccl-tests: host time of several in a row, from when all ranks are there until the GPU has finished.
    fn once(&self) -> Result<u64, String> {
        let (Some(nccl), Some(part)) = (&self.nccl, &self.part) else { return Err(TOO_EARLY.to_owned()) };
        let ranks = [part.as_rank()];
        nccl.all_reduce(&ranks, 1)?;
        part.synchronize().map_err(in_words)?;
        let count = (part.to.bytes() / 4) as usize;
        let mut failure = None;
        let all = host_ns(|| {
            for _ in 0..IN_A_ROW {
                if let Err(why) = nccl.all_reduce(&ranks, count) {
                    failure = Some(why);
                    return Err(CudaError::Stopped);
                }
            }
            part.synchronize()
        });
        match failure {
            Some(why) => Err(why),
            None => Ok((all.map_err(in_words)? / IN_A_ROW).max(1)),
        }
    }
}

const TOO_EARLY: &str = "it was asked to measure before it was ready";

fn in_words(error: CudaError) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat(node: &str, gpu: &str, nccl: &str) -> Seated {
        Seated { node: node.to_owned(), gpu: gpu.to_owned(), largest: 1, nccl: nccl.to_owned() }
    }

    #[test]
    fn two_ranks_on_one_gpu_and_different_libraries_are_named() {
        let words = |seats: &[Seated]| check_seats(seats).map_err(|error| error.to_string());
        let (a, b, c) = (seat("n", "0", "v"), seat("n", "1", "v"), seat("m", "0", "v"));
        assert_eq!(words(&[a.clone(), b.clone(), c]), Ok(()));
        let same = words(&[a.clone(), b.clone(), b]).unwrap_err();
        assert!(same.starts_with("ranks 1 and 2 use the same GPU"), "{same}");
        let other = words(&[a, seat("n", "1", "w")]).unwrap_err();
        assert!(other.starts_with("rank 1 has w and rank 0 has v"), "{other}");
    }

    #[test]
    fn the_slowest_rank_counts() {
        assert_eq!(slowest(&[Answer::Ns(7), Answer::Ns(9), Answer::Ns(8)]).unwrap(), 9);
        assert!(slowest(&[Answer::Ns(7), Answer::Ready]).is_err());
    }
}
