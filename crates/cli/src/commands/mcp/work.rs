//! Who does what? One thread reads messages and answers the short ones; another one runs tools in order.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::Value;

use super::lines::{LONGEST_LINE, Line, next_line};
use super::message::{Code, Message, Request, RpcError, reply};
use super::server::Server;
use super::stop::Stop;

/// Calls that may wait for their turn; then the client has to wait before it can send more.
const WAITING_CALLS: usize = 64;

/// A call of a tool that waits for its turn.
struct Call {
    request: Request,
    stop: Stop,
}

/// The calls that have not been answered, by id.
#[derive(Default)]
struct Calls(Mutex<HashMap<String, Stop>>);

impl Calls {
    fn begin(&self, id: &Value) -> Stop {
        let stop = Stop::default();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_string(), Arc::clone(&stop));
        stop
    }

    fn end(&self, id: &Value) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id.to_string());
    }

    fn cancel(&self, id: &Value) {
        if let Some(stop) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&id.to_string()) {
            stop.store(true, Ordering::Relaxed);
        }
    }
}

/// One message per line, written as a whole.
struct Out<W>(Mutex<W>);

impl<W: Write> Out<W> {
    fn send(&self, message: &Value) -> io::Result<()> {
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(out, "{message}")?;
        out.flush()
    }
}

/// Answers messages until the input ends, and then finishes the calls that wait.
pub(super) fn serve(server: &Server, mut input: impl BufRead, out: impl Write + Send) -> io::Result<()> {
    let (out, calls) = (Out(Mutex::new(out)), Calls::default());
    let (queue, waiting) = sync_channel(WAITING_CALLS);
    let result = thread::scope(|scope| {
        let worker = scope.spawn(|| run_calls(server, waiting, &calls, &out));
        let read = read_messages(server, &mut input, &queue, &calls, &out);
        drop(queue);
        let worked = worker.join().unwrap_or_else(|_| Err(io::Error::other("a tool ended the server")));
        read.and(worked)
    });
    // The client has gone: there is nobody left to answer.
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn run_calls<W: Write>(
    server: &Server,
    waiting: Receiver<Call>,
    calls: &Calls,
    out: &Out<W>,
) -> io::Result<()> {
    for Call { request, stop } in waiting {
        let id = request.id.clone().unwrap_or_default();
        let answer = server.answer(&request, &stop);
        calls.end(&id);
        // Who cancels a call does not want its answer.
        if !stop.load(Ordering::Relaxed) {
            out.send(&reply(id, answer))?;
        }
    }
    Ok(())
}

fn read_messages<W: Write>(
    server: &Server,
    input: &mut impl BufRead,
    queue: &SyncSender<Call>,
    calls: &Calls,
    out: &Out<W>,
) -> io::Result<()> {
    while let Some(line) = next_line(input)? {
        let parsed = match line {
            Line::TooLong => {
                Err(RpcError::new(Code::InvalidRequest, format!("a line has more than {LONGEST_LINE} bytes")))
            }
            Line::Text(text) if text.trim_ascii().is_empty() => continue,
            Line::Text(text) => serde_json::from_slice(&text)
                .map_err(|error| RpcError::new(Code::Parse, format!("not JSON: {error}"))),
        };
        match parsed {
            Err(error) => out.send(&reply(Value::Null, Err(error)))?,
            Ok(Value::Array(batch)) => answer_batch(server, batch, out)?,
            Ok(one) => match Message::of(one) {
                Message::Request(request) => take(server, request, queue, calls, out)?,
                Message::Invalid { id, error } => out.send(&reply(id, Err(error)))?,
                Message::Ignored => {}
            },
        }
    }
    Ok(())
}

/// Answers a request, or puts it into the queue.
fn take<W: Write>(
    server: &Server,
    request: Request,
    queue: &SyncSender<Call>,
    calls: &Calls,
    out: &Out<W>,
) -> io::Result<()> {
    let Some(id) = request.id.clone() else {
        if let ("notifications/cancelled", Some(id)) =
            (request.method.as_str(), request.params.get("requestId"))
        {
            calls.cancel(id);
        }
        return Ok(());
    };
    if Server::is_long(&request) {
        let stop = calls.begin(&id);
        // Fails only if the client closed its side, which the next line will show.
        return queue.send(Call { request, stop }).map_err(|_| io::ErrorKind::BrokenPipe.into());
    }
    out.send(&reply(id, server.answer(&request, &Stop::default())))
}

/// Batches exist in one version of the protocol, and nobody sends them: they are answered in order, as a list.
fn answer_batch<W: Write>(server: &Server, batch: Vec<Value>, out: &Out<W>) -> io::Result<()> {
    if batch.is_empty() {
        let error = RpcError::new(Code::InvalidRequest, "an empty batch");
        return out.send(&reply(Value::Null, Err(error)));
    }
    let answers: Vec<Value> = batch
        .into_iter()
        .filter_map(|one| match Message::of(one) {
            Message::Request(request) => {
                let id = request.id.clone()?;
                Some(reply(id, server.answer(&request, &Stop::default())))
            }
            Message::Invalid { id, error } => Some(reply(id, Err(error))),
            Message::Ignored => None,
        })
        .collect();
    if answers.is_empty() { Ok(()) } else { out.send(&Value::Array(answers)) }
}
