//! The part of CUPTI that recording needs.

#![expect(unsafe_code, reason = "CUPTI is called here")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use super::layout::kind;
use super::library::{Library, text_at};

pub(super) type BufferRequested = extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
pub(super) type BufferCompleted = extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
/// CUPTI calls it before and after each enabled call, with the subscriber's data, the domain and id of the call, and
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
type Finalize = unsafe extern "C" fn() -> c_int;
type Version = unsafe extern "C" fn(*mut u32) -> c_int;

/// Another profiler already uses CUPTI.
const MULTIPLE_SUBSCRIBERS: c_int = 39;
const SYSTEM_THREAD_IDS: u32 = 1;

/// Parts of the names of the runtime calls to record: they launch, copy, wait or allocate. The others
/// (`cudaGetDevice`, a hundred times per step) add no information, and recording them costs as much.
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
/// CUPTI numbers calls from 1 on; the runtime has about 450.
const MAX_CALLS: u32 = 1000;

/// Launches that bypass the runtime: the only driver calls that are recorded.
const DRIVER_LAUNCHES: [u32; 6] = [307, 442, 514, 515, 652, 653];

const KINDS: [u32; 7] =
    [kind::DEVICE, kind::MEMCPY, kind::MEMCPY_PEER, kind::MEMSET, kind::KERNEL, kind::MARKER, kind::OVERHEAD];

/// The functions of one CUPTI library, in every version since CUDA 11.
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
    /// The subscriber handle, once CUPTI is subscribed.
    subscriber: *mut c_void,
    thread_ids: Option<ThreadIds>,
    version: Version,
    finalize: Option<Finalize>,
}

// SAFETY: function pointers, and a handle that only CUPTI interprets; all may be used from any thread.
unsafe impl Send for Cupti {}
// SAFETY: as above.
unsafe impl Sync for Cupti {}

impl Cupti {
    /// `None` if the library lacks one of them.
    pub(super) fn of(library: &Library) -> Option<Self> {
        let symbol = |name: &CStr| Some(library.symbol(name)?.as_ptr());
        // SAFETY: each name is a CUPTI function with the signature from its header, which is the same in all
        // versions.
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
                finalize: symbol(c"cuptiFinalize").map(|address| transmute::<*mut c_void, Finalize>(address)),
            })
        }
    }

    /// Subscribes this process to CUPTI: buffers and calls arrive through these functions from now on.
    ///
    /// # Errors
    /// With a message: another profiler uses CUPTI, or it returns an error.
    pub(super) fn take(
        &mut self,
        requested: BufferRequested,
        completed: BufferCompleted,
        called: Called,
    ) -> Result<(), String> {
        // SAFETY: CUPTI functions with arguments as its header requires; the callbacks live as long as the process.
        unsafe {
            match (self.subscribe)(&raw mut self.subscriber, called, null_mut()) {
                0 => {}
                MULTIPLE_SUBSCRIBERS => {
                    return Err(
                        "another profiler already uses CUPTI in this process; nothing is recorded".to_owned()
                    );
                }
                code => {
                    return Err(format!(
                        "CUPTI refuses the subscription (error {code}); nothing is recorded"
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
                    Err(format!("CUPTI refuses to record (error {code}); nothing is recorded"))
                }
            }
        }
    }

    /// Unsubscribes, so that others can use CUPTI.
    pub(super) fn release(&self) {
        // SAFETY: the subscriber came from CUPTI, and nothing was enabled for it.
        unsafe { (self.unsubscribe)(self.subscriber) };
    }

    /// Detaches CUPTI from the process after [`release`](Self::release): until then calls stay slower, even with nothing
    /// enabled. No other thread may be inside CUDA or CUPTI.
    pub(super) fn detach(&self) {
        if let Some(finalize) = self.finalize {
            // SAFETY: nothing is subscribed or enabled, and the caller guarantees that no thread is inside CUPTI, which
            // starts again by itself at its next call.
            unsafe { finalize() };
        }
    }

    /// Starts recording, with callbacks for these calls by domain and id; returns the kinds that could not be
    /// enabled. `is_late` is for a process that already used CUDA when CUPTI was subscribed: there, selecting calls one by one records
    /// none of them (CUPTI 13.0), so all are recorded.
    pub(super) fn begin(&self, calls: impl Iterator<Item = (u32, u32)>, is_late: bool) -> Vec<u32> {
        // SAFETY: as above; a version returns an error for kinds that it does not know.
        let mut refused: Vec<u32> =
            KINDS.into_iter().filter(|kind| unsafe { (self.enable)(*kind) } != 0).collect();
        refused.extend(self.begin_calls());
        if is_late {
            // SAFETY: as above.
            refused.extend(
                [kind::DRIVER, kind::RUNTIME].into_iter().filter(|kind| unsafe { (self.enable)(*kind) } != 0),
            );
        }
        self.set_callbacks(calls, true);
        refused
    }

    /// Starts recording calls and nothing else; returns the kinds that could not be enabled.
    pub(super) fn begin_calls(&self) -> Vec<u32> {
        let mut refused = Vec::new();
        // Older CUPTI versions record all calls or none.
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
        refused
    }

    fn set_callbacks(&self, calls: impl Iterator<Item = (u32, u32)>, is_wanted: bool) {
        for (domain, call) in calls {
            // SAFETY: as above; the subscriber came from CUPTI.
            unsafe { (self.enable_callback)(is_wanted.into(), self.subscriber, domain, call) };
        }
    }

    fn calls_that_matter(&self) -> impl Iterator<Item = u32> + '_ {
        (1..MAX_CALLS).filter(|call| self.is_wanted(false, *call))
    }

    /// Whether a call is recorded.
    pub(super) fn is_wanted(&self, is_driver: bool, call: u32) -> bool {
        if is_driver {
            return DRIVER_LAUNCHES.contains(&call);
        }
        let name = String::from_utf8_lossy(&self.call_name(false, call)).into_owned();
        RUNTIME_CALLS.iter().any(|part| name.contains(part))
    }

    /// Records kernels and the calls that launch them, or neither; everything else stays as it is.
    pub(super) fn set_kernels(&self, is_wanted: bool) {
        // SAFETY: as above.
        unsafe {
            match is_wanted {
                true => (self.enable)(kind::KERNEL),
                false => (self.disable)(kind::KERNEL),
            };
            if let Some(enable) = self.enable_driver {
                DRIVER_LAUNCHES.into_iter().for_each(|call| _ = enable(call, is_wanted.into()));
            }
            if let Some(enable) = self.enable_runtime {
                self.runtime_launches().iter().for_each(|call| _ = enable(*call, is_wanted.into()));
            }
        }
    }

    fn runtime_launches(&self) -> &'static [u32] {
        static LAUNCHES: OnceLock<Vec<u32>> = OnceLock::new();
        LAUNCHES.get_or_init(|| {
            let is_launch =
                |call: &u32| self.call_name(false, *call).windows(6).any(|part| part == b"Launch");
            (1..MAX_CALLS).filter(is_launch).collect()
        })
    }

    /// Stops what [`begin`](Self::begin) started, for the same calls.
    pub(super) fn end(&self, calls: impl Iterator<Item = (u32, u32)>) {
        self.set_callbacks(calls, false);
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

    /// Delivers complete buffers; with `all`, also incomplete ones.
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

    /// The id of a stream, given by its address, as used in the records of its context.
    pub(super) fn stream(&self, context: *mut c_void, stream: usize, is_per_thread: bool) -> Option<u32> {
        let mut id = 0;
        // SAFETY: as above; context and stream come from the call in the callback.
        (unsafe { (self.stream_id)(context, stream, is_per_thread.into(), &raw mut id) } == 0).then_some(id)
    }

    /// Records lost since the last call of this function.
    pub(super) fn dropped(&self) -> u64 {
        let mut dropped = 0;
        // SAFETY: as above; a null context means all.
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

    /// The offset of each record in a buffer.
    pub(super) fn records(&self, buffer: &mut [u8]) -> Vec<usize> {
        let mut all = Vec::new();
        let mut record: *mut u8 = null_mut();
        // SAFETY: CUPTI filled this buffer up to its valid length, and CUPTI itself iterates over it.
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
