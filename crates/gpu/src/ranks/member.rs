//! A rank other than 0: does what rank 0 asks, until it ends or anyone fails.

use std::io::BufReader;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use super::error::{RankList, RanksError};
use super::lines::{Incoming, next_line, say};
use super::message::{Answer, Command};
use super::worker::{Asked, Said, Worker};

enum Event {
    Asked(Command),
    RootGone,
    Worker(Said),
}

/// Answers rank 0 until it ends the measurement.
///
/// # Errors
/// If this rank fails, or any other one.
pub(crate) fn serve(
    rank: u32,
    root: TcpStream,
    within: Duration,
    work: impl FnOnce(&Asked<'_>) -> Result<(), String> + Send + 'static,
) -> Result<(), RanksError> {
    let (events, heard) = channel();
    let root = Arc::new(root);
    let (of_worker, incoming) = (events.clone(), Incoming(Arc::clone(&root)));
    thread::spawn(move || listen(incoming, &events));
    let worker = Worker::start(work, move |said| {
        let _ = of_worker.send(Event::Worker(said));
    });
    let mut is_ending = false;
    loop {
        // Rank 0 may itself wait that long for another rank, and then says so.
        let event = match heard.recv_timeout(2 * within) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                let (missing, within) = (RankList(vec![0]), 2 * within);
                return Err(RanksError::Silent { missing, within, during: "this rank waited for it" });
            }
        };
        match event {
            Event::Asked(Command::GiveUp) => return Err(RanksError::GivenUp),
            Event::Asked(command) => {
                is_ending = command == Command::End;
                worker.ask(command);
            }
            Event::Worker(Said::Answer(answer)) => {
                let said = say(&root, &answer);
                if let Answer::Failed(why) = answer {
                    return Err(RanksError::Failed { rank, why });
                }
                said.map_err(|_| RanksError::Gone { rank: 0 })?;
            }
            Event::Worker(Said::Gone) if is_ending => return Ok(()),
            Event::Worker(Said::Gone) => {
                let why = "it ended unexpectedly".to_owned();
                let _ = say(&root, &Answer::Failed(why.clone()));
                return Err(RanksError::Failed { rank, why });
            }
            // After its last command it does not wait.
            Event::RootGone if is_ending => {}
            Event::RootGone => return Err(RanksError::Gone { rank: 0 }),
        }
    }
}

fn listen(incoming: Incoming, events: &Sender<Event>) {
    let mut input = BufReader::new(incoming);
    while let Some(command) = next_line(&mut input).and_then(|line| line.parse().ok()) {
        if events.send(Event::Asked(command)).is_err() {
            return;
        }
    }
    let _ = events.send(Event::RootGone);
}
