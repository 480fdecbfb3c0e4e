//! What does the host wait for, and what do streams? CUPTI has activity records of it, but with these on every launch takes longer (1.4 µs on an
//! H200's host, more than the rest of recording); calls that wait tell the same when they are made, and only these are asked.

#![expect(unsafe_code, reason = "CUPTI hands over the calls' arguments by address")]

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, OnceLock};

use super::cupti::Cupti;
use crate::format::Record;

/// `CUpti_CallbackData`, the same in all versions.
#[repr(C)]
struct About {
    site: c_int,
    function: *const c_void,
    arguments: *const usize,
    result: *const c_int,
    symbol: *const c_void,
    context: *mut c_void,
    context_id: u32,
    correlation_data: *mut u64,
    correlation: u32,
}

const ENTERED: c_int = 0;

/// The numbers of `CUpti_ActivitySynchronizationType`, as recordings have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Wait {
    Event = 1,
    StreamForEvent = 2,
    Stream = 3,
    Device = 4,
}

/// A call that is asked for, and whether its default stream is the thread's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Wait(Wait, bool),
    EventRecord(bool),
}

/// Of the runtime or the driver by its name: `cudaStreamSynchronize_ptsz_v7000`, `cuStreamSynchronize`.
fn asked(name: &str) -> Option<Asked> {
    let (stem, rest) = name.split_once('_').unwrap_or((name, ""));
    let is_per_thread = rest.starts_with("ptsz");
    Some(match stem.strip_prefix("cuda").or_else(|| stem.strip_prefix("cu"))? {
        "StreamSynchronize" => Asked::Wait(Wait::Stream, is_per_thread),
        "EventSynchronize" => Asked::Wait(Wait::Event, false),
        "StreamWaitEvent" => Asked::Wait(Wait::StreamForEvent, is_per_thread),
        "DeviceSynchronize" | "ThreadSynchronize" | "CtxSynchronize" => Asked::Wait(Wait::Device, false),
        "EventRecord" | "EventRecordWithFlags" => Asked::EventRecord(is_per_thread),
        _ => return None,
    })
}

/// The domains of callbacks whose calls are asked for: the driver's and the runtime's.
pub(super) const DOMAINS: [u32; 2] = [1, 2];
/// CUPTI numbers its calls from 1 on; there are some 750 of the driver.
const MOST_CALLS: u32 = 1000;

/// So many are kept until they are written; a thread that writes no more must not fill the memory.
const MOST_SEEN: usize = 1 << 20;

struct Calls {
    cupti: Cupti,
    /// By domain and number.
    asked: HashMap<(u32, u32), Asked>,
}

static CALLS: OnceLock<Calls> = OnceLock::new();
static SEEN: Mutex<Vec<Record<'static>>> = Mutex::new(Vec::new());
/// Events have addresses; records have numbers.
static EVENTS: Mutex<Option<HashMap<usize, u32>>> = Mutex::new(None);

thread_local! {
    /// When this thread's call was entered, and its correlation: calls within it are part of it.
    static ENTERED_AT: Cell<Option<(u64, u32)>> = const { Cell::new(None) };
}

/// The calls to be told of, by domain and number.
pub(super) fn calls(cupti: &Cupti) -> impl Iterator<Item = (u32, u32)> + use<> {
    let calls = CALLS.get_or_init(|| {
        let all = DOMAINS.into_iter().flat_map(|domain| (1..MOST_CALLS).map(move |call| (domain, call)));
        let asked = all.filter_map(|(domain, call)| {
            let name = cupti.call_name(domain == DOMAINS[0], call);
            Some(((domain, call), asked(std::str::from_utf8(&name).ok()?)?))
        });
        Calls { cupti: *cupti, asked: asked.collect() }
    });
    #[expect(clippy::disallowed_methods, reason = "sorted right after")]
    let mut calls: Vec<(u32, u32)> = calls.asked.keys().copied().collect();
    calls.sort_unstable();
    calls.into_iter()
}

/// What was seen since the last time.
pub(super) fn take() -> Vec<Record<'static>> {
    SEEN.lock().map(|mut seen| std::mem::take(&mut *seen)).unwrap_or_default()
}

/// CUPTI calls this before and after each call that was asked for, on the thread that makes it.
pub(super) extern "C" fn called(_: *mut c_void, domain: u32, call: u32, about: *const c_void) {
    // A mistake of ours must not end a program of somebody else's.
    let _ = std::panic::catch_unwind(|| {
        // SAFETY: for these domains CUPTI gives its callback data, valid during the callback.
        if let Some(about) = unsafe { about.cast::<About>().as_ref() } {
            see((domain, call), about);
        }
    });
}

fn see(call: (u32, u32), about: &About) {
    let Some(calls) = CALLS.get() else { return };
    let Some(asked) = calls.asked.get(&call) else { return };
    // Threads that end have no place for it any more.
    let entered = ENTERED_AT.try_with(Cell::get).ok().flatten();
    if about.site == ENTERED {
        if entered.is_none() {
            let now = calls.cupti.now();
            let _ = ENTERED_AT.try_with(|at| at.set(Some((now, about.correlation))));
        }
        return;
    }
    let Some((start, correlation)) = entered.filter(|(_, correlation)| *correlation == about.correlation)
    else {
        return;
    };
    let _ = ENTERED_AT.try_with(|at| at.set(None));
    let argument = |index: usize| {
        // SAFETY: the arguments of these calls are that many addresses in a row, as their headers say; flags after them are not read.
        if about.arguments.is_null() { 0 } else { unsafe { *about.arguments.add(index) } }
    };
    let stream = |index, is_per_thread| calls.cupti.stream(about.context, argument(index), is_per_thread);
    let record = match *asked {
        Asked::EventRecord(is_per_thread) => {
            let Some(stream) = stream(1, is_per_thread) else { return };
            Record::EventRecord { correlation, stream, event: event_id(argument(0)) }
        }
        Asked::Wait(wait, is_per_thread) => {
            let end = calls.cupti.now();
            let (stream, event) = match wait {
                Wait::Event => (None, event_id(argument(0))),
                Wait::StreamForEvent => (stream(0, is_per_thread), event_id(argument(1))),
                Wait::Stream => (stream(0, is_per_thread), 0),
                Wait::Device => (None, 0),
            };
            Record::Sync {
                start,
                end,
                correlation,
                stream: stream.map_or(-1, i64::from),
                kind: wait as u32,
                event,
            }
        }
    };
    if let Ok(mut seen) = SEEN.lock()
        && seen.len() < MOST_SEEN
    {
        seen.push(record);
    }
}

fn event_id(address: usize) -> u32 {
    let Ok(mut events) = EVENTS.lock() else { return 0 };
    let events = events.get_or_insert_default();
    let next = u32::try_from(events.len() + 1).unwrap_or(u32::MAX);
    *events.entry(address).or_insert(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_known_by_their_names_in_any_version() {
        assert_eq!(asked("cudaStreamSynchronize_v3020"), Some(Asked::Wait(Wait::Stream, false)));
        assert_eq!(asked("cudaStreamSynchronize_ptsz_v7000"), Some(Asked::Wait(Wait::Stream, true)));
        assert_eq!(asked("cuStreamWaitEvent_ptsz"), Some(Asked::Wait(Wait::StreamForEvent, true)));
        assert_eq!(asked("cudaEventSynchronize_v3020"), Some(Asked::Wait(Wait::Event, false)));
        assert_eq!(asked("cuCtxSynchronize"), Some(Asked::Wait(Wait::Device, false)));
        assert_eq!(asked("cudaEventRecordWithFlags_v11010"), Some(Asked::EventRecord(false)));
        assert_eq!(asked("cudaGraphAddEventRecordNode_v11010"), None);
        assert_eq!(asked("cudaEventRecordx"), None);
        assert_eq!(asked("call 7"), None);
    }
}
