//! How does an OpenTelemetry collector get the figures? A thread sends each interval as OTLP/HTTP in JSON.
//!
//! `top` never waits for it: only the newest interval waits to be sent, and replaces one that still waits. What a collector
//! does not take is not sent again, because the next interval follows.

mod endpoint;
mod request;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use busbound::machine::live::Snapshot;
use busbound::report::{OtlpTimes, top_as_otlp};

use self::endpoint::Endpoint;
use self::request::{PATIENCE, post};
use crate::failure::Failure;
use crate::io::output::warn;

/// The thread that sends.
pub(super) struct Otlp {
    endpoint: Endpoint,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// When the first interval was published, in nanoseconds since 1970.
    first_unix_ns: Option<u64>,
    /// The body of the next request.
    waiting: Option<String>,
    /// Until what there is to say about the request is said.
    is_sending: bool,
    /// Whether the last request failed.
    is_failing: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Otlp {
    /// `says` is whether failures may be written to standard error.
    /// Whether the address is one.
    pub(super) fn check(given: Option<&str>) -> Result<(), Failure> {
        Endpoint::resolve(given).map(drop).map_err(Failure::usage)
    }

    pub(super) fn start(given: Option<&str>, says: bool) -> Result<Self, Failure> {
        let endpoint = Endpoint::resolve(given).map_err(Failure::usage)?;
        let shared = Arc::new(Shared::default());
        let (thread, to) = (Arc::clone(&shared), endpoint.clone());
        let send = move || send_all(&thread, &to, says);
        let started = std::thread::Builder::new().name("otlp".to_owned()).spawn(send);
        started.map_err(|error| Failure::usage(format!("cannot send metrics: {error}")))?;
        Ok(Self { endpoint, shared })
    }

    pub(super) fn endpoint(&self) -> String {
        self.endpoint.to_string()
    }

    /// Whether the last request failed.
    pub(super) fn is_failing(&self) -> bool {
        self.shared.state().is_failing
    }

    pub(super) fn publish(&self, snapshot: &Snapshot) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let unix_ns = u64::try_from(now).unwrap_or(u64::MAX);
        let mut state = self.shared.state();
        let first_unix_ns = *state.first_unix_ns.get_or_insert(unix_ns);
        state.waiting = Some(top_as_otlp(snapshot, OtlpTimes { first_unix_ns, unix_ns }));
        self.shared.changed.notify_all();
    }
}

impl Drop for Otlp {
    /// The last interval still has a chance; a collector that takes too long for it does not get it.
    fn drop(&mut self) {
        let is_busy = |state: &mut State| state.waiting.is_some() || state.is_sending;
        drop(self.shared.changed.wait_timeout_while(self.shared.state(), PATIENCE, is_busy));
    }
}

fn send_all(shared: &Shared, endpoint: &Endpoint, says: bool) {
    loop {
        let body = {
            let nothing = |state: &mut State| state.waiting.is_none();
            let state = shared.changed.wait_while(shared.state(), nothing);
            let mut state = state.unwrap_or_else(PoisonError::into_inner);
            state.is_sending = true;
            state.waiting.take().unwrap_or_default()
        };
        let sent = post(endpoint, &body);
        let was_failing = std::mem::replace(&mut shared.state().is_failing, sent.is_err());
        match sent {
            Err(why) if says && !was_failing => {
                warn(&format!("cannot send metrics to {endpoint}: {why}; trying again every interval"));
            }
            Ok(()) if says && was_failing => warn(&format!("metrics are sent to {endpoint} again")),
            _ => {}
        }
        shared.state().is_sending = false;
        shared.changed.notify_all();
    }
}
