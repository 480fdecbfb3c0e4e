//! All ranks, as rank 0 sees them: it asks all, and waits until all have answered. One that fails ends it for all.

use std::io::BufReader;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::error::{RankList, RanksError};
use super::lines::{Incoming, next_line, say};
use super::message::{Answer, Command};
use super::worker::{Asked, Said, Worker};

/// After one rank has failed, others fail because of it. This long is waited for the one that was the cause.
const AFTER_A_FAILURE: Duration = Duration::from_millis(300);

enum Member {
    Here(Worker),
    There(Arc<TcpStream>),
}

struct Event {
    rank: u32,
    said: Said,
}

/// Ends for all if it is dropped before [`Party::end`].
pub(crate) struct Party {
    /// By rank.
    members: Vec<Member>,
    heard: Receiver<Event>,
    within: Duration,
    has_ended: bool,
}

impl Party {
    /// Of this process, which is rank 0, and the others by rank.
    pub(crate) fn new(
        others: Vec<TcpStream>,
        within: Duration,
        work: impl FnOnce(&Asked<'_>) -> Result<(), String> + Send + 'static,
    ) -> Self {
        let (events, heard) = channel::<Event>();
        let own = events.clone();
        let worker = Worker::start(work, move |said| {
            let _ = own.send(Event { rank: 0, said });
        });
        let mut members = vec![Member::Here(worker)];
        for (stream, rank) in others.into_iter().zip(1..) {
            let stream = Arc::new(stream);
            let (events, incoming) = (events.clone(), Incoming(Arc::clone(&stream)));
            thread::spawn(move || listen(rank, incoming, &events));
            members.push(Member::There(stream));
        }
        Self { members, heard, within, has_ended: false }
    }

    pub(crate) fn size(&self) -> u32 {
        self.members.len() as u32
    }

    /// Asks all, and waits for all answers. By rank; `during` is for the message if one does not come.
    pub(crate) fn ask_all(
        &mut self,
        command: &Command,
        during: &'static str,
    ) -> Result<Vec<Answer>, RanksError> {
        (0..self.size()).for_each(|rank| self.tell(rank, command));
        self.hear(0..self.size(), during)
    }

    /// Asks one.
    pub(crate) fn ask(
        &mut self,
        rank: u32,
        command: &Command,
        during: &'static str,
    ) -> Result<Answer, RanksError> {
        self.tell(rank, command);
        let answers = self.hear(rank..rank + 1, during)?;
        answers.into_iter().next().ok_or(RanksError::Gone { rank })
    }

    /// What everyone says without being asked.
    pub(crate) fn hear_all(&mut self, during: &'static str) -> Result<Vec<Answer>, RanksError> {
        self.hear(0..self.size(), during)
    }

    /// Ends in order: all have their results, so that only this process's own end is waited for.
    pub(crate) fn end(mut self) {
        self.has_ended = true;
        (0..self.size()).for_each(|rank| self.tell(rank, &Command::End));
        let deadline = Instant::now() + self.within;
        let own_end = |event: Event| matches!(event, Event { rank: 0, said: Said::Gone });
        while let Ok(event) = self.heard.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            if own_end(event) {
                return;
            }
        }
    }

    /// That a rank is gone is heard, not noticed here.
    fn tell(&self, rank: u32, command: &Command) {
        match &self.members[rank as usize] {
            Member::Here(worker) => worker.ask(command.clone()),
            Member::There(stream) => drop(say(stream, command)),
        }
    }

    fn hear(&mut self, of: std::ops::Range<u32>, during: &'static str) -> Result<Vec<Answer>, RanksError> {
        let deadline = Instant::now() + self.within;
        let mut answers: Vec<Option<Answer>> = vec![None; of.len()];
        while answers.iter().any(Option::is_none) {
            match self.heard.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Event { rank, said: Said::Answer(Answer::Failed(why)) }) => {
                    return Err(self.cause(RanksError::Failed { rank, why }));
                }
                Ok(Event { rank, said: Said::Gone }) => return Err(RanksError::Gone { rank }),
                Ok(Event { rank, said: Said::Answer(answer) }) => {
                    let place = rank.checked_sub(of.start).and_then(|at| answers.get_mut(at as usize));
                    place.map(|place| place.replace(answer));
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    let open = of.zip(&answers).filter(|(_, answer)| answer.is_none());
                    let missing = RankList(open.map(|(rank, _)| rank).collect());
                    return Err(RanksError::Silent { missing, within: self.within, during });
                }
            }
        }
        Ok(answers.into_iter().flatten().collect())
    }

    /// A process that ended without a word is the cause; what others say then is that they miss it.
    fn cause(&self, first: RanksError) -> RanksError {
        let deadline = Instant::now() + AFTER_A_FAILURE;
        let mut has_spoken = Vec::new();
        if let RanksError::Failed { rank, .. } = &first {
            has_spoken.push(*rank);
        }
        while let Ok(event) = self.heard.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            match event.said {
                Said::Answer(Answer::Failed(_)) => has_spoken.push(event.rank),
                Said::Gone if !has_spoken.contains(&event.rank) => {
                    return RanksError::Gone { rank: event.rank };
                }
                _ => {}
            }
        }
        first
    }
}

impl Drop for Party {
    fn drop(&mut self) {
        if !self.has_ended {
            (1..self.size()).for_each(|rank| self.tell(rank, &Command::GiveUp));
        }
    }
}

fn listen(rank: u32, incoming: Incoming, events: &Sender<Event>) {
    let mut input = BufReader::new(incoming);
    while let Some(answer) = next_line(&mut input).and_then(|line| line.parse().ok()) {
        if events.send(Event { rank, said: Said::Answer(answer) }).is_err() {
            return;
        }
    }
    let _ = events.send(Event { rank, said: Said::Gone });
}
