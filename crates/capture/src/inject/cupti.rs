//! As much of CUPTI as recording takes.

#![expect(unsafe_code, reason = "CUPTI is called here")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr::{null, null_mut};

use super::layout::kind;
use super::library::{Library, text_at};

pub(super) type BufferRequested = extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
pub(super) type BufferCompleted = extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
/// CUPTI calls it before and after each call that was asked for, with the subscriber's data, the call's domain and number, and
/// the callback data.
pub(super) type Called = extern "C" fn(*mut c_void, u32, u32, *const c_void);

type Register = unsafe extern "C" fn(BufferRequested, BufferCompleted) -> c_int;
type OfKind = unsafe extern "C" fn(u32) -> c_int;
type OfApi = unsafe extern "C" fn(u32, u8) -> c_int;
type Flush = unsafe extern "C" fn(u32) -> c_int;
type Next = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> c_int;
type Timestamp = unsafe extern "C" fn(*mut u64) -> c_int;
type DroppedRecords = unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> c_int;
type CallbackName = unsafe extern "C" fn(u32, u32, *mut *const c_char) -> c_int;
type Subscribe = unsafe extern "C" fn(*mut *mut c_void, Called, *mut c_void) -> c_int;
type Unsubscribe = unsafe extern "C" fn(*mut c_void) -> c_int;
type EnableCallback = unsafe extern "C" fn(u32, *mut c_void, u32, u32) -> c_int;
type StreamId = unsafe extern "C" fn(*mut c_void, usize, u8, *mut u32) -> c_int;
type ThreadIds = unsafe extern "C" fn(u32) -> c_int;
type Version = unsafe extern "C" fn(*mut u32) -> c_int;

/// Another profiler has CUPTI already.
const MULTIPLE_SUBSCRIBERS: c_int = 39;
const SYSTEM_THREAD_IDS: u32 = 1;

/// What runtime calls that matter have in their names: they launch, copy, wait or take memory. Others (`cudaGetDevice`, a hundred
/// times a step) tell nothing, and recording them costs as much.
const RUNTIME_CALLS: [&str; 13] = [
    "Launch",
    "Memcpy",
    "Memset",
    "MemPrefetch",
    "Synchronize",
    "EventRecord",
    "WaitEvent",
    "Malloc",
    "Free",
    "HostAlloc",
    "HostRegister",
    "Capture_",
    "GraphInstantiate",
];
/// CUPTI numbers its calls from 1 on; there are some 450 of the runtime.
const MOST_CALLS: u32 = 1000;

/// Launches that do not come through the runtime: of all driver calls these are recorded.
const DRIVER_LAUNCHES: [u32; 6] = [307, 442, 514, 515, 652, 653];

const KINDS: [u32; 7] =
    [kind::DEVICE, kind::MEMCPY, kind::MEMCPY_PEER, kind::MEMSET, kind::KERNEL, kind::MARKER, kind::OVERHEAD];

/// The functions of one CUPTI, in every version since CUDA 11.
#[derive(Clone, Copy)]
pub(super) struct Cupti {
    register: Register,
    enable: OfKind,
    disable: OfKind,
    enable_driver: Option<OfApi>,
    enable_runtime: Option<OfApi>,
    flush: Flush,
    next: Next,
    timestamp: Timestamp,
    dropped: DroppedRecords,
    callback_name: CallbackName,
    subscribe: Subscribe,
    unsubscribe: Unsubscribe,
    enable_callback: EnableCallback,
    stream_id: StreamId,
    /// What CUPTI knows us by, once it is taken.
    subscriber: *mut c_void,
    thread_ids: Option<ThreadIds>,
    version: Version,
}

// SAFETY: functions, and a name that means something to CUPTI alone; all may be used from any thread.
unsafe impl Send for Cupti {}
// SAFETY: as above.
unsafe impl Sync for Cupti {}

impl Cupti {
    /// `None` where the library lacks one of them.
    pub(super) fn of(library: &Library) -> Option<Self> {
        let symbol = |name: &CStr| Some(library.symbol(name)?.as_ptr());
        // SAFETY: each name is that of a function of CUPTI, whose signature its header gives; they are the same in all versions.
        unsafe {
            Some(Self {
                register: transmute::<*mut c_void, Register>(symbol(c"cuptiActivityRegisterCallbacks")?),
                enable: transmute::<*mut c_void, OfKind>(symbol(c"cuptiActivityEnable")?),
                disable: transmute::<*mut c_void, OfKind>(symbol(c"cuptiActivityDisable")?),
                enable_driver: symbol(c"cuptiActivityEnableDriverApi")
                    .map(|address| transmute::<*mut c_void, OfApi>(address)),
                enable_runtime: symbol(c"cuptiActivityEnableRuntimeApi")
                    .map(|address| transmute::<*mut c_void, OfApi>(address)),
                flush: transmute::<*mut c_void, Flush>(symbol(c"cuptiActivityFlushAll")?),
                next: transmute::<*mut c_void, Next>(symbol(c"cuptiActivityGetNextRecord")?),
                timestamp: transmute::<*mut c_void, Timestamp>(symbol(c"cuptiGetTimestamp")?),
                dropped: transmute::<*mut c_void, DroppedRecords>(symbol(
                    c"cuptiActivityGetNumDroppedRecords",
                )?),
                callback_name: transmute::<*mut c_void, CallbackName>(symbol(c"cuptiGetCallbackName")?),
                subscribe: transmute::<*mut c_void, Subscribe>(symbol(c"cuptiSubscribe")?),
                unsubscribe: transmute::<*mut c_void, Unsubscribe>(symbol(c"cuptiUnsubscribe")?),
                enable_callback: transmute::<*mut c_void, EnableCallback>(symbol(c"cuptiEnableCallback")?),
                stream_id: transmute::<*mut c_void, StreamId>(symbol(c"cuptiGetStreamIdEx")?),
                subscriber: null_mut(),
                thread_ids: symbol(c"cuptiSetThreadIdType")
                    .map(|address| transmute::<*mut c_void, ThreadIds>(address)),
                version: transmute::<*mut c_void, Version>(symbol(c"cuptiGetVersion")?),
            })
        }
    }

    /// Takes CUPTI for this process: buffers and calls come through these functions from now on.
    ///
    /// # Errors
    /// In words: another profiler has it, or it refuses.
    pub(super) fn take(
        &mut self,
        requested: BufferRequested,
        completed: BufferCompleted,
        called: Called,
    ) -> Result<(), String> {
        // SAFETY: CUPTI's functions with arguments as its header asks; the callbacks live as long as the process.
        unsafe {
            match (self.subscribe)(&raw mut self.subscriber, called, null_mut()) {
                0 => {}
                MULTIPLE_SUBSCRIBERS => {
                    return Err(
                        "another profiler has this process already, so nothing is recorded".to_owned()
                    );
                }
                code => {
                    return Err(format!(
                        "CUPTI refuses to be subscribed to (error {code}), so nothing is recorded"
                    ));
                }
            }
            if let Some(thread_ids) = self.thread_ids {
                thread_ids(SYSTEM_THREAD_IDS);
            }
            match (self.register)(requested, completed) {
                0 => Ok(()),
                code => {
                    self.release();
                    Err(format!("CUPTI refuses to record (error {code}), so nothing is recorded"))
                }
            }
        }
    }

    /// Gives CUPTI back, for others to subscribe to.
    pub(super) fn release(&self) {
        // SAFETY: the subscriber is the one that CUPTI gave, and nothing was enabled for it.
        unsafe { (self.unsubscribe)(self.subscriber) };
    }

    /// Begins recording, and telling of these calls by domain and number; gives the kinds that could not be.
    pub(super) fn begin(&self, told: impl Iterator<Item = (u32, u32)>) -> Vec<u32> {
        // SAFETY: as above; kinds that a version does not know are refused with an error.
        let mut refused: Vec<u32> =
            KINDS.into_iter().filter(|kind| unsafe { (self.enable)(*kind) } != 0).collect();
        // An older CUPTI records all calls or none.
        let mut whole = |kind: u32| {
            // SAFETY: as above.
            if unsafe { (self.enable)(kind) } != 0 {
                refused.push(kind);
            }
        };
        match self.enable_driver {
            // SAFETY: as above.
            Some(enable) => DRIVER_LAUNCHES.into_iter().for_each(|call| _ = unsafe { enable(call, 1) }),
            None => whole(kind::DRIVER),
        }
        match self.enable_runtime {
            // SAFETY: as above.
            Some(enable) => self.calls_that_matter().for_each(|call| _ = unsafe { enable(call, 1) }),
            None => whole(kind::RUNTIME),
        }
        self.tell_of(told, true);
        refused
    }

    fn tell_of(&self, calls: impl Iterator<Item = (u32, u32)>, is_wanted: bool) {
        for (domain, call) in calls {
            // SAFETY: as above; the subscriber is the one that CUPTI gave.
            unsafe { (self.enable_callback)(is_wanted.into(), self.subscriber, domain, call) };
        }
    }

    fn calls_that_matter(&self) -> impl Iterator<Item = u32> + '_ {
        (1..MOST_CALLS).filter(|call| {
            let name = String::from_utf8_lossy(&self.call_name(false, *call)).into_owned();
            RUNTIME_CALLS.iter().any(|part| name.contains(part))
        })
    }

    /// Ends what [`begin`](Self::begin) began, of the same calls.
    pub(super) fn end(&self, told: impl Iterator<Item = (u32, u32)>) {
        self.tell_of(told, false);
        for kind in KINDS.into_iter().chain([kind::DRIVER, kind::RUNTIME]) {
            // SAFETY: as above.
            unsafe { (self.disable)(kind) };
        }
        if let Some(enable) = self.enable_driver {
            // SAFETY: as above.
            DRIVER_LAUNCHES.into_iter().for_each(|call| _ = unsafe { enable(call, 0) });
        }
        if let Some(enable) = self.enable_runtime {
            // SAFETY: as above.
            self.calls_that_matter().for_each(|call| _ = unsafe { enable(call, 0) });
        }
    }

    /// Hands over what is complete; with `all`, also what is not.
    pub(super) fn flush(&self, all: bool) {
        // SAFETY: as above.
        unsafe { (self.flush)(u32::from(all)) };
    }

    pub(super) fn now(&self) -> u64 {
        let mut now = 0;
        // SAFETY: as above.
        unsafe { (self.timestamp)(&raw mut now) };
        now
    }

    pub(super) fn version(&self) -> u32 {
        let mut version = 0;
        // SAFETY: as above.
        unsafe { (self.version)(&raw mut version) };
        version
    }

    /// The number of a stream, which is given by its address, in the records of its context.
    pub(super) fn stream(&self, context: *mut c_void, stream: usize, is_per_thread: bool) -> Option<u32> {
        let mut id = 0;
        // SAFETY: as above; context and stream are those of the call that CUPTI tells of.
        (unsafe { (self.stream_id)(context, stream, is_per_thread.into(), &raw mut id) } == 0).then_some(id)
    }

    /// Records lost since the last time this was asked.
    pub(super) fn dropped(&self) -> u64 {
        let mut dropped = 0;
        // SAFETY: as above; no context means all.
        unsafe { (self.dropped)(null_mut(), 0, &raw mut dropped) };
        dropped as u64
    }

    /// The name of a runtime or driver call.
    pub(super) fn call_name(&self, is_driver: bool, callback: u32) -> Vec<u8> {
        let mut name = null();
        // SAFETY: as above; CUPTI's names are constant strings.
        unsafe {
            match (self.callback_name)(if is_driver { 1 } else { 2 }, callback, &raw mut name) {
                0 => text_at(name as usize).to_vec(),
                _ => format!("call {callback}").into_bytes(),
            }
        }
    }

    /// Where each record of a buffer begins.
    pub(super) fn records(&self, buffer: &mut [u8]) -> Vec<usize> {
        let mut all = Vec::new();
        let mut record: *mut u8 = null_mut();
        // SAFETY: the buffer is one that CUPTI has filled, with its valid length; it steps through it by itself.
        while unsafe { (self.next)(buffer.as_mut_ptr(), buffer.len(), &raw mut record) } == 0 {
            let Some(at) = (record as usize).checked_sub(buffer.as_ptr() as usize) else { break };
            if at >= buffer.len() {
                break;
            }
            all.push(at);
        }
        all
    }
}
