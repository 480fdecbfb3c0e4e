//! What does the host wait for, what do streams wait for, and which memory do copies touch? CUPTI has activity records for this, but enabling them
//! slows down every launch (1.4 µs on an H200 host, more than the rest of recording). Callbacks of the waiting calls
//! give the same information, and only these calls are enabled.

#![expect(unsafe_code, reason = "CUPTI passes the calls' arguments by address")]

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use super::accesses::{self, AccessCall, StreamCall};
use super::cupti::Cupti;
use super::numa;
use super::pinned::PinCall;
use super::placement;
use crate::format::{Record, UNKNOWN_STREAM};

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

/// The numbers of `CUpti_ActivitySynchronizationType`, as used in recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Wait {
    Event = 1,
    StreamForEvent = 2,
    Stream = 3,
    Device = 4,
}

/// A call to observe, and whether its default stream is per thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Wait(Wait, bool),
    EventRecord(bool),
    Access(AccessCall),
    Stream(StreamCall),
    Pin(PinCall),
    /// Makes the stream in this argument wait for something else than an event.
    OtherWait(usize, bool),
}

/// Classifies a runtime or driver call by name: `cudaStreamSynchronize_ptsz_v7000`, `cuStreamSynchronize`.
fn asked(name: &str) -> Option<Asked> {
    let (stem, rest) = name.split_once('_').unwrap_or((name, ""));
    let is_per_thread = rest.contains("ptsz") || rest.contains("ptds");
    let of_runtime = stem.strip_prefix("cuda");
    let stem = of_runtime.or_else(|| stem.strip_prefix("cu"))?;
    Some(match stem {
        "StreamSynchronize" => Asked::Wait(Wait::Stream, is_per_thread),
        "EventSynchronize" => Asked::Wait(Wait::Event, false),
        "StreamWaitEvent" => Asked::Wait(Wait::StreamForEvent, is_per_thread),
        "DeviceSynchronize" | "ThreadSynchronize" | "CtxSynchronize" => Asked::Wait(Wait::Device, false),
        "EventRecord" | "EventRecordWithFlags" => Asked::EventRecord(is_per_thread),
        "LaunchHostFunc" | "StreamAddCallback" | "StreamWaitValue32" | "StreamWaitValue64"
        | "StreamBatchMemOp" => Asked::OtherWait(0, is_per_thread),
        "WaitExternalSemaphoresAsync" => Asked::OtherWait(3, is_per_thread),
        _ => {
            let access = AccessCall::named(stem, of_runtime.is_some(), is_per_thread).map(Asked::Access);
            let stream = || StreamCall::named(stem, of_runtime.is_some()).map(Asked::Stream);
            access.or_else(stream).or_else(|| PinCall::named(stem).map(Asked::Pin))?
        }
    })
}

/// The callback domains of these calls: driver and runtime.
pub(super) const DOMAINS: [u32; 2] = [1, 2];
/// CUPTI numbers calls from 1 on; the driver has about 750.
const MAX_CALLS: u32 = 1000;

/// Max records kept until they are written: a stuck writer thread must not fill the memory.
const MAX_SEEN: usize = 1 << 20;

struct Calls {
    cupti: Cupti,
    /// By domain and id.
    asked: HashMap<(u32, u32), Asked>,
    /// Whether the machine has several NUMA nodes: then the kernel is asked where the memory of copies is.
    has_several_nodes: bool,
}

static CALLS: OnceLock<Calls> = OnceLock::new();
static SEEN: Mutex<Vec<Record<'static>>> = Mutex::new(Vec::new());
/// Records that were not kept because there were too many.
static LOST: AtomicU64 = AtomicU64::new(0);
/// Events have addresses; records have ids.
static EVENTS: Mutex<Option<HashMap<usize, u32>>> = Mutex::new(None);

thread_local! {
    /// When this thread entered its call, and the correlation: nested calls are part of it.
    static ENTERED_AT: Cell<Option<(u64, u32)>> = const { Cell::new(None) };
}

/// The calls to observe, by domain and id.
pub(super) fn calls(cupti: &Cupti) -> impl Iterator<Item = (u32, u32)> + use<> {
    let calls = CALLS.get_or_init(|| {
        let all = DOMAINS.into_iter().flat_map(|domain| (1..MAX_CALLS).map(move |call| (domain, call)));
        let asked = all.filter_map(|(domain, call)| {
            let name = cupti.call_name(domain == DOMAINS[0], call);
            Some(((domain, call), asked(std::str::from_utf8(&name).ok()?)?))
        });
        Calls { cupti: *cupti, asked: asked.collect(), has_several_nodes: numa::has_several(Path::new("/")) }
    });
    #[expect(clippy::disallowed_methods, reason = "sorted right after")]
    let mut calls: Vec<(u32, u32)> = calls.asked.keys().copied().collect();
    calls.sort_unstable();
    calls.into_iter()
}

/// Stops recording, and with it observing these calls.
pub(super) fn end(cupti: &Cupti) {
    cupti.end(calls(cupti));
    accesses::forget_streams();
}

/// The records since the last call of this function.
pub(super) fn take() -> Vec<Record<'static>> {
    SEEN.lock().map(|mut seen| std::mem::take(&mut *seen)).unwrap_or_default()
}

/// How many were not kept since the last call of this function.
pub(super) fn take_lost() -> u64 {
    LOST.swap(0, Ordering::Relaxed)
}

/// CUPTI calls this before and after each enabled call, on the calling thread.
pub(super) extern "C" fn called(_: *mut c_void, domain: u32, call: u32, about: *const c_void) {
    // A bug here must not end the user's program.
    let _ = std::panic::catch_unwind(|| {
        // SAFETY: for these domains CUPTI passes its callback data, valid during the callback.
        if let Some(about) = unsafe { about.cast::<About>().as_ref() } {
            see((domain, call), about);
        }
    });
}

fn see(call: (u32, u32), about: &About) {
    let Some(calls) = CALLS.get() else { return };
    let Some(asked) = calls.asked.get(&call) else { return };
    // Threads that are ending no longer have thread-local storage.
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
        // SAFETY: the arguments of these calls are that many consecutive words, as their headers say; flags after them are
        // not read, except those of a copy, which are padded to a word.
        if about.arguments.is_null() { 0 } else { unsafe { *about.arguments.add(index) } }
    };
    let stream = |index, is_per_thread| calls.cupti.stream(about.context, argument(index), is_per_thread);
    keep(match *asked {
        Asked::EventRecord(is_per_thread) => {
            let stream = stream(1, is_per_thread).unwrap_or(UNKNOWN_STREAM);
            Record::EventRecord { correlation, stream, event: event_id(argument(0)) }
        }
        Asked::OtherWait(index, is_per_thread) => {
            let stream = stream(index, is_per_thread).unwrap_or(UNKNOWN_STREAM);
            Record::OtherWait { correlation, stream }
        }
        Asked::Access(call) => {
            let copy = call.copy.filter(|_| calls.has_several_nodes);
            if let Some(node) = copy.and_then(|copy| placement::node_of(copy, argument)) {
                keep(Record::HostNode { correlation, node });
            }
            call.record(correlation, argument)
        }
        Asked::Stream(call) => {
            if succeeded(about) {
                // SAFETY: the call succeeded, so it wrote a stream to the address that it was given.
                call.note(argument, |address| unsafe { *(address as *const usize) });
            }
            return;
        }
        Asked::Pin(call) => {
            if succeeded(about) {
                call.note(argument);
            }
            return;
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
    });
}

/// Whether the call that has returned was successful.
fn succeeded(about: &About) -> bool {
    // SAFETY: after a call, CUPTI passes the address of its result.
    unsafe { about.result.as_ref() }.is_some_and(|result| *result == 0)
}

fn keep(record: Record<'static>) {
    if let Ok(mut seen) = SEEN.lock() {
        match seen.len() < MAX_SEEN {
            true => seen.push(record),
            false => _ = LOST.fetch_add(1, Ordering::Relaxed),
        }
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
    fn calls_are_recognized_by_name_in_any_version() {
        assert_eq!(asked("cudaStreamSynchronize_v3020"), Some(Asked::Wait(Wait::Stream, false)));
        assert_eq!(asked("cudaStreamSynchronize_ptsz_v7000"), Some(Asked::Wait(Wait::Stream, true)));
        assert_eq!(asked("cuStreamWaitEvent_ptsz"), Some(Asked::Wait(Wait::StreamForEvent, true)));
        assert_eq!(asked("cudaEventSynchronize_v3020"), Some(Asked::Wait(Wait::Event, false)));
        assert_eq!(asked("cuCtxSynchronize"), Some(Asked::Wait(Wait::Device, false)));
        assert_eq!(asked("cudaEventRecordWithFlags_v11010"), Some(Asked::EventRecord(false)));
        let access = |stem, is_runtime, is_per_thread| {
            Some(Asked::Access(AccessCall::named(stem, is_runtime, is_per_thread).unwrap()))
        };
        assert_eq!(asked("cudaMemcpyAsync_ptsz_v7000"), access("MemcpyAsync", true, true));
        assert_eq!(asked("cudaMemcpy_ptds_v7000"), access("Memcpy", true, true));
        assert_eq!(asked("cuMemcpyHtoDAsync_v2"), access("MemcpyHtoDAsync", false, false));
        assert_eq!(asked("cuMemcpyHtoDAsync_v2_ptsz"), access("MemcpyHtoDAsync", false, true));
        assert_eq!(asked("cudaMemsetAsync_v3020"), access("MemsetAsync", true, false));
        let create = StreamCall::Create { has_flags: true };
        assert_eq!(asked("cudaStreamCreateWithPriority_v5050"), Some(Asked::Stream(create)));
        assert_eq!(asked("cuStreamWaitValue32_v2_ptsz"), Some(Asked::OtherWait(0, true)));
        assert_eq!(asked("cudaLaunchHostFunc_v10000"), Some(Asked::OtherWait(0, false)));
        assert_eq!(asked("cuMemAllocHost_v2"), Some(Asked::Pin(PinCall)));
        assert_eq!(asked("cudaMemcpy2DAsync_v3020"), None);
        assert_eq!(asked("cudaGraphAddEventRecordNode_v11010"), None);
        assert_eq!(asked("cudaEventRecordx"), None);
        assert_eq!(asked("call 7"), None);
    }
}
