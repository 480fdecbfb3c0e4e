//! The CUDA driver's functions that carrying copies needs, by their real addresses.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::sync::OnceLock;

use super::real::in_driver as named;

/// The driver's error code; 0 is success.
pub(super) type Code = c_int;
/// `CUDA_ERROR_NOT_INITIALIZED`: what the driver's functions return without a driver.
pub(super) const NOT_INITIALIZED: Code = 3;
/// `CUDA_ERROR_NOT_READY`.
pub(super) const NOT_READY: Code = 600;

/// A stream by its handle. The first numbers are the two default streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Stream(pub(super) usize);

impl Stream {
    /// The default stream that waits for all others.
    pub(super) const LEGACY: Self = Self(1);
    /// The default stream of each thread.
    pub(super) const PER_THREAD: Self = Self(2);
    /// Handles above are addresses.
    pub(super) fn is_default(self) -> bool {
        self.0 <= 2
    }
}

pub(super) type CopyIn = unsafe extern "C" fn(u64, *const c_void, usize, Stream) -> Code;
pub(super) type CopyOut = unsafe extern "C" fn(*mut c_void, u64, usize, Stream) -> Code;
type OfStream = unsafe extern "C" fn(Stream) -> Code;
type AboutStream = unsafe extern "C" fn(Stream, *mut usize) -> Code;
type Capturing = unsafe extern "C" fn(Stream, *mut c_int) -> Code;
type CreateEvent = unsafe extern "C" fn(*mut usize, u32) -> Code;
type OfEvent = unsafe extern "C" fn(usize) -> Code;
type RecordEvent = unsafe extern "C" fn(usize, Stream) -> Code;
type Attributes = unsafe extern "C" fn(u32, *const c_int, *const *mut c_void, u64) -> Code;
type Current = unsafe extern "C" fn(*mut usize) -> Code;
type ContextId = unsafe extern "C" fn(usize, *mut u64) -> Code;
type CurrentDevice = unsafe extern "C" fn(*mut c_int) -> Code;
type DeviceAttribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> Code;
type BusId = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> Code;
type ExchangeMode = unsafe extern "C" fn(*mut c_int) -> Code;
type Unregister = unsafe extern "C" fn(*mut c_void) -> Code;
type Register = unsafe extern "C" fn(*mut c_void, usize, u32) -> Code;

/// The functions, loaded once.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) copy_in: CopyIn,
    pub(super) copy_out: CopyOut,
    stream_synchronize: OfStream,
    stream_context: AboutStream,
    is_capturing: Capturing,
    event_create: CreateEvent,
    event_record: RecordEvent,
    event_query: OfEvent,
    event_synchronize: OfEvent,
    attributes: Attributes,
    current: Current,
    /// Newer than the others: since CUDA 12.
    context_id: ContextId,
    current_device: CurrentDevice,
    device_attribute: DeviceAttribute,
    bus_id: BusId,
    exchange_mode: ExchangeMode,
    register: Register,
    unregister: Unregister,
}

/// What an address is, as the driver says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Memory {
    /// Unknown to the driver: the program's own memory.
    Pageable,
    /// A GPU's, up to this address.
    Device { end: u64 },
    /// Pinned, managed or anything else.
    Other,
}

const MEMORY_TYPE: c_int = 2;
const IS_MANAGED: c_int = 8;
const RANGE_START: c_int = 11;
const RANGE_SIZE: c_int = 12;
const TYPE_NONE: u32 = 0;
const TYPE_DEVICE: u32 = 2;
/// `CU_EVENT_DISABLE_TIMING`.
const WITHOUT_TIMING: u32 = 2;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
const RELAXED: c_int = 2;
/// `CU_MEMHOSTREGISTER_PORTABLE`.
const PORTABLE: u32 = 1;
/// The GPU reads the host's own page tables (Grace): no staging is needed.
const USES_HOST_PAGE_TABLES: c_int = 100;

impl Driver {
    /// The driver that this process has loaded.
    pub(super) fn get() -> Option<&'static Self> {
        static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
        DRIVER.get_or_init(Self::load).as_ref()
    }

    fn load() -> Option<Self> {
        // SAFETY: each address is that of the driver's function of this name, whose C type is the one given.
        unsafe {
            Some(Self {
                copy_in: transmute::<*mut c_void, CopyIn>(named(c"cuMemcpyHtoDAsync_v2")?),
                copy_out: transmute::<*mut c_void, CopyOut>(named(c"cuMemcpyDtoHAsync_v2")?),
                stream_synchronize: transmute::<*mut c_void, OfStream>(named(c"cuStreamSynchronize")?),
                stream_context: transmute::<*mut c_void, AboutStream>(named(c"cuStreamGetCtx")?),
                is_capturing: transmute::<*mut c_void, Capturing>(named(c"cuStreamIsCapturing")?),
                event_create: transmute::<*mut c_void, CreateEvent>(named(c"cuEventCreate")?),
                event_record: transmute::<*mut c_void, RecordEvent>(named(c"cuEventRecord")?),
                event_query: transmute::<*mut c_void, OfEvent>(named(c"cuEventQuery")?),
                event_synchronize: transmute::<*mut c_void, OfEvent>(named(c"cuEventSynchronize")?),
                attributes: transmute::<*mut c_void, Attributes>(named(c"cuPointerGetAttributes")?),
                current: transmute::<*mut c_void, Current>(named(c"cuCtxGetCurrent")?),
                context_id: transmute::<*mut c_void, ContextId>(named(c"cuCtxGetId")?),
                current_device: transmute::<*mut c_void, CurrentDevice>(named(c"cuCtxGetDevice")?),
                device_attribute: transmute::<*mut c_void, DeviceAttribute>(named(c"cuDeviceGetAttribute")?),
                bus_id: transmute::<*mut c_void, BusId>(named(c"cuDeviceGetPCIBusId")?),
                exchange_mode: transmute::<*mut c_void, ExchangeMode>(named(
                    c"cuThreadExchangeStreamCaptureMode",
                )?),
                register: transmute::<*mut c_void, Register>(named(c"cuMemHostRegister_v2")?),
                unregister: transmute::<*mut c_void, Unregister>(named(c"cuMemHostUnregister")?),
            })
        }
    }

    /// What is at this address?
    pub(super) fn memory_at(&self, address: u64) -> Memory {
        let (mut kind, mut managed, mut start, mut size) = (0u32, 0u32, 0u64, 0usize);
        let asked = [MEMORY_TYPE, IS_MANAGED, RANGE_START, RANGE_SIZE];
        let answers: [*mut c_void; 4] = [
            (&raw mut kind).cast(),
            (&raw mut managed).cast(),
            (&raw mut start).cast(),
            (&raw mut size).cast(),
        ];
        // SAFETY: each answer has the type of its attribute.
        let code = unsafe { (self.attributes)(4, asked.as_ptr(), answers.as_ptr(), address) };
        match (code, kind, managed) {
            (0, TYPE_NONE, 0) => Memory::Pageable,
            (0, TYPE_DEVICE, 0) => Memory::Device { end: start.saturating_add(size as u64) },
            _ => Memory::Other,
        }
    }

    /// The current context, and the number that tells it from a later one at the same address.
    pub(super) fn current_context(&self) -> Option<(usize, u64)> {
        let mut context = 0;
        // SAFETY: fills the handle.
        if unsafe { (self.current)(&raw mut context) } != 0 || context == 0 {
            return None;
        }
        let mut id = 0;
        // SAFETY: fills the number of a context that is current.
        (unsafe { (self.context_id)(context, &raw mut id) } == 0).then_some((context, id))
    }

    /// The context that a stream belongs to; `None` if the driver does not say.
    pub(super) fn context_of(&self, stream: Stream) -> Option<usize> {
        let mut context = 0;
        // SAFETY: the driver checks the handle that the program passed.
        (unsafe { (self.stream_context)(stream, &raw mut context) } == 0).then_some(context)
    }

    /// True if the driver says that the stream runs what it is given.
    pub(super) fn runs(&self, stream: Stream) -> bool {
        let mut status = 0;
        // SAFETY: fills the status.
        unsafe { (self.is_capturing)(stream, &raw mut status) == 0 && status == 0 }
    }

    /// Until it is dropped, calls of this thread never invalidate a capture that another thread begins.
    pub(super) fn beside_captures(&self) -> BesideCaptures<'_> {
        let mut mode = RELAXED;
        // SAFETY: exchanges the mode of this thread.
        let is_exchanged = unsafe { (self.exchange_mode)(&raw mut mode) } == 0;
        BesideCaptures { driver: self, before: is_exchanged.then_some(mode) }
    }

    pub(super) fn synchronize(&self, stream: Stream) -> Code {
        // SAFETY: the driver checks the handle.
        unsafe { (self.stream_synchronize)(stream) }
    }

    /// A new event of the current context.
    pub(super) fn event(&self) -> Option<Event> {
        let mut event = 0;
        // SAFETY: fills the handle.
        (unsafe { (self.event_create)(&raw mut event, WITHOUT_TIMING) } == 0).then_some(Event(event))
    }

    pub(super) fn record(&self, event: Event, stream: Stream) -> Code {
        // SAFETY: the event belongs to the current context, and so does the stream.
        unsafe { (self.event_record)(event.0, stream) }
    }

    /// 0 if everything before the event is done, [`NOT_READY`] if not.
    pub(super) fn query(&self, event: Event) -> Code {
        // SAFETY: the event exists as long as its context.
        unsafe { (self.event_query)(event.0) }
    }

    pub(super) fn wait(&self, event: Event) -> Code {
        // SAFETY: as above.
        unsafe { (self.event_synchronize)(event.0) }
    }

    /// Pins memory of this library for all contexts.
    pub(super) fn register(&self, at: *mut u8, length: usize) -> Code {
        // SAFETY: the memory is mapped and belongs to the ring.
        unsafe { (self.register)(at.cast(), length, PORTABLE) }
    }

    /// Undoes `register`; an error says that it was undone.
    pub(super) fn unregister(&self, at: *mut u8) {
        // SAFETY: the driver checks the address.
        unsafe { (self.unregister)(at.cast()) };
    }

    /// The GPU of the current context: its PCI address, and whether it reads the host's page tables.
    pub(super) fn current_gpu(&self) -> Option<(String, bool)> {
        let (mut device, mut shares) = (0, 0);
        let mut name: [c_char; 32] = [0; 32];
        // SAFETY: each call fills what it is given; the name's length is passed.
        let codes = unsafe {
            [
                (self.current_device)(&raw mut device),
                (self.bus_id)(name.as_mut_ptr(), 32, device),
                (self.device_attribute)(&raw mut shares, USES_HOST_PAGE_TABLES, device),
            ]
        };
        if codes[..2] != [0, 0] {
            return None;
        }
        // SAFETY: the driver ends the name with a zero within its length.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) };
        Some((name.to_string_lossy().to_lowercase(), shares != 0))
    }
}

/// Gives a thread its mode back.
#[derive(Debug)]
pub(super) struct BesideCaptures<'a> {
    driver: &'a Driver,
    before: Option<c_int>,
}

impl Drop for BesideCaptures<'_> {
    fn drop(&mut self) {
        if let Some(mut mode) = self.before {
            // SAFETY: exchanges the mode of this thread for the one it was in.
            unsafe { (self.driver.exchange_mode)(&raw mut mode) };
        }
    }
}

/// An event by its handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event(usize);

#[cfg(test)]
impl Event {
    pub(super) fn none() -> Self {
        Self(0)
    }
}
