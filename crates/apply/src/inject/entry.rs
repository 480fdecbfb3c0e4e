//! The functions that programs get instead of the driver's. Each says what is to be copied; [`choose`] decides whether
//! this library does it, and otherwise the driver's own function is called with the same arguments.

#![expect(non_snake_case, reason = "the driver's own names")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use super::captures;
use super::choose;
use super::driver::{Code, NOT_INITIALIZED, Stream};
use super::real::in_driver as named;
use super::request::Request;

/// One of the driver's functions, found when it is first needed.
struct Original {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Original {
    const fn of(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(null_mut()) }
    }

    fn address(&self) -> Option<*mut c_void> {
        let known = self.address.load(Relaxed);
        if !known.is_null() {
            return Some(known);
        }
        let found = named(self.name)?;
        self.address.store(found, Relaxed);
        Some(found)
    }
}

/// Calls the driver's function of this name, of this type.
macro_rules! original {
    ($name:literal, ($($argument:ident: $type:ty),*)) => {{
        static ORIGINAL: Original = Original::of($name);
        match ORIGINAL.address() {
            // SAFETY: the driver's function of this name has this type; the arguments are the program's own.
            Some(at) => unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> Code>(at)($($argument),*)
            },
            None => NOT_INITIALIZED,
        }
    }};
}

/// Defines the replacement of a copy: `waits` if the call returns when the copy is done, on `stream`.
macro_rules! copies {
    ($($function:ident = $name:literal ($to:ident: $to_type:ty, $from:ident: $from_type:ty $(, $stream:ident)?)
        on $on:expr, waits $waits:literal;)*) => {$(
        #[cfg_attr(feature = "injected", unsafe(no_mangle))]
        pub(super) unsafe extern "C" fn $function($to: $to_type, $from: $from_type, bytes: usize $(, $stream: Stream)?) -> Code {
            let request = Request {
                to: $to as u64,
                from: $from as u64,
                bytes,
                stream: $on,
                waits: $waits,
            };
            choose::copy(request, || original!($name, ($to: $to_type, $from: $from_type, bytes: usize $(, $stream: Stream)?)))
        }
    )*};
}

/// The default stream of a function, where the program passes none.
fn or(stream: Stream, default: Stream) -> Stream {
    if stream.0 == 0 { default } else { stream }
}

copies! {
    cuMemcpy = c"cuMemcpy" (to: u64, from: u64) on Stream::LEGACY, waits true;
    cuMemcpy_ptds = c"cuMemcpy_ptds" (to: u64, from: u64) on Stream::PER_THREAD, waits true;
    cuMemcpyAsync = c"cuMemcpyAsync" (to: u64, from: u64, stream) on or(stream, Stream::LEGACY), waits false;
    cuMemcpyAsync_ptsz = c"cuMemcpyAsync_ptsz" (to: u64, from: u64, stream) on or(stream, Stream::PER_THREAD), waits false;
    cuMemcpyHtoD_v2 = c"cuMemcpyHtoD_v2" (to: u64, from: *const c_void) on Stream::LEGACY, waits true;
    cuMemcpyHtoD_v2_ptds = c"cuMemcpyHtoD_v2_ptds" (to: u64, from: *const c_void) on Stream::PER_THREAD, waits true;
    cuMemcpyHtoDAsync_v2 = c"cuMemcpyHtoDAsync_v2" (to: u64, from: *const c_void, stream) on or(stream, Stream::LEGACY), waits false;
    cuMemcpyHtoDAsync_v2_ptsz = c"cuMemcpyHtoDAsync_v2_ptsz" (to: u64, from: *const c_void, stream) on or(stream, Stream::PER_THREAD), waits false;
    cuMemcpyDtoH_v2 = c"cuMemcpyDtoH_v2" (to: *mut c_void, from: u64) on Stream::LEGACY, waits true;
    cuMemcpyDtoH_v2_ptds = c"cuMemcpyDtoH_v2_ptds" (to: *mut c_void, from: u64) on Stream::PER_THREAD, waits true;
    cuMemcpyDtoHAsync_v2 = c"cuMemcpyDtoHAsync_v2" (to: *mut c_void, from: u64, stream) on or(stream, Stream::LEGACY), waits false;
    cuMemcpyDtoHAsync_v2_ptsz = c"cuMemcpyDtoHAsync_v2_ptsz" (to: *mut c_void, from: u64, stream) on or(stream, Stream::PER_THREAD), waits false;
}

/// Defines the replacement of a call that begins a capture.
macro_rules! begins {
    ($($function:ident = $name:literal ($($argument:ident: $type:ty),*);)*) => {$(
        #[cfg_attr(feature = "injected", unsafe(no_mangle))]
        pub(super) unsafe extern "C" fn $function($($argument: $type),*) -> Code {
            captures::begin();
            let code = original!($name, ($($argument: $type),*));
            if code != 0 {
                captures::end();
            }
            code
        }
    )*};
}

begins! {
    cuStreamBeginCapture_v2 = c"cuStreamBeginCapture_v2" (stream: Stream, mode: c_int);
    cuStreamBeginCapture_v2_ptsz = c"cuStreamBeginCapture_v2_ptsz" (stream: Stream, mode: c_int);
    cuStreamBeginCaptureToGraph = c"cuStreamBeginCaptureToGraph" (stream: Stream, graph: usize, after: *const usize, edges: *const c_void, count: usize, mode: c_int);
    cuStreamBeginCaptureToGraph_ptsz = c"cuStreamBeginCaptureToGraph_ptsz" (stream: Stream, graph: usize, after: *const usize, edges: *const c_void, count: usize, mode: c_int);
}

#[cfg_attr(feature = "injected", unsafe(no_mangle))]
pub(super) unsafe extern "C" fn cuStreamEndCapture(stream: Stream, graph: *mut usize) -> Code {
    let code = original!(c"cuStreamEndCapture", (stream: Stream, graph: *mut usize));
    captures::end();
    code
}

#[cfg_attr(feature = "injected", unsafe(no_mangle))]
pub(super) unsafe extern "C" fn cuStreamEndCapture_ptsz(stream: Stream, graph: *mut usize) -> Code {
    let code = original!(c"cuStreamEndCapture_ptsz", (stream: Stream, graph: *mut usize));
    captures::end();
    code
}

#[cfg_attr(feature = "injected", unsafe(no_mangle))]
pub(super) unsafe extern "C" fn cuGetProcAddress(
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: u64,
) -> Code {
    let code = original!(c"cuGetProcAddress", (symbol: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64));
    replace(code, symbol, function, version, flags);
    code
}

#[cfg_attr(feature = "injected", unsafe(no_mangle))]
pub(super) unsafe extern "C" fn cuGetProcAddress_v2(
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut c_int,
) -> Code {
    let code = original!(c"cuGetProcAddress_v2", (symbol: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64, status: *mut c_int));
    replace(code, symbol, function, version, flags);
    code
}

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
const PER_THREAD: u64 = 2;
/// The version since which `cuGetProcAddress` takes a fifth argument.
const WITH_STATUS: c_int = 12_000;

/// Puts our function where the driver wrote the address of its own.
fn replace(code: Code, symbol: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64) {
    if code != 0 || symbol.is_null() || function.is_null() {
        return;
    }
    // SAFETY: the driver has written the address; the program owns the place.
    if unsafe { *function }.is_null() {
        return;
    }
    // SAFETY: the driver has read it as a C string.
    let symbol = unsafe { CStr::from_ptr(symbol) };
    let ours = match symbol.to_bytes() {
        b"cuGetProcAddress" if version < WITH_STATUS => Some(cuGetProcAddress as *mut c_void),
        b"cuGetProcAddress" => Some(cuGetProcAddress_v2 as *mut c_void),
        _ => by_base_name(symbol, version, flags & PER_THREAD != 0),
    };
    if let Some(ours) = ours {
        // SAFETY: as above.
        unsafe { *function = ours };
    }
}

/// A function as the program asks for it, and its replacement.
struct Row {
    /// As `cuGetProcAddress` knows it (itself aside, whose type depends on the version), and whether for the default stream of each thread.
    base: &'static CStr,
    is_per_thread: bool,
    /// The version of CUDA since which it has this type: programs for older ones get another function of the same name.
    since: c_int,
    /// As the library exports it.
    exported: &'static CStr,
    ours: fn() -> *mut c_void,
}

macro_rules! rows {
    ($($base:literal $is_per_thread:literal $since:literal $exported:literal $function:ident;)*) => {
        [$(Row { base: $base, is_per_thread: $is_per_thread, since: $since, exported: $exported, ours: || $function as *mut c_void },)*]
    };
}

/// All of them.
static ROWS: [Row; 20] = rows! {
    c"cuMemcpy" false 4000 c"cuMemcpy" cuMemcpy;
    c"cuMemcpy" true 4000 c"cuMemcpy_ptds" cuMemcpy_ptds;
    c"cuMemcpyAsync" false 4000 c"cuMemcpyAsync" cuMemcpyAsync;
    c"cuMemcpyAsync" true 4000 c"cuMemcpyAsync_ptsz" cuMemcpyAsync_ptsz;
    c"cuMemcpyHtoD" false 3020 c"cuMemcpyHtoD_v2" cuMemcpyHtoD_v2;
    c"cuMemcpyHtoD" true 3020 c"cuMemcpyHtoD_v2_ptds" cuMemcpyHtoD_v2_ptds;
    c"cuMemcpyHtoDAsync" false 3020 c"cuMemcpyHtoDAsync_v2" cuMemcpyHtoDAsync_v2;
    c"cuMemcpyHtoDAsync" true 3020 c"cuMemcpyHtoDAsync_v2_ptsz" cuMemcpyHtoDAsync_v2_ptsz;
    c"cuMemcpyDtoH" false 3020 c"cuMemcpyDtoH_v2" cuMemcpyDtoH_v2;
    c"cuMemcpyDtoH" true 3020 c"cuMemcpyDtoH_v2_ptds" cuMemcpyDtoH_v2_ptds;
    c"cuMemcpyDtoHAsync" false 3020 c"cuMemcpyDtoHAsync_v2" cuMemcpyDtoHAsync_v2;
    c"cuMemcpyDtoHAsync" true 3020 c"cuMemcpyDtoHAsync_v2_ptsz" cuMemcpyDtoHAsync_v2_ptsz;
    c"cuStreamBeginCapture" false 10010 c"cuStreamBeginCapture_v2" cuStreamBeginCapture_v2;
    c"cuStreamBeginCapture" true 10010 c"cuStreamBeginCapture_v2_ptsz" cuStreamBeginCapture_v2_ptsz;
    c"cuStreamBeginCaptureToGraph" false 12030 c"cuStreamBeginCaptureToGraph" cuStreamBeginCaptureToGraph;
    c"cuStreamBeginCaptureToGraph" true 12030 c"cuStreamBeginCaptureToGraph_ptsz" cuStreamBeginCaptureToGraph_ptsz;
    c"cuStreamEndCapture" false 10000 c"cuStreamEndCapture" cuStreamEndCapture;
    c"cuStreamEndCapture" true 10000 c"cuStreamEndCapture_ptsz" cuStreamEndCapture_ptsz;
    c"" false 3020 c"cuGetProcAddress" cuGetProcAddress;
    c"" false 3020 c"cuGetProcAddress_v2" cuGetProcAddress_v2;
};

/// Ours for a function by its exported name.
pub(super) fn replacement(exported: &CStr) -> Option<*mut c_void> {
    ROWS.iter().find(|row| row.exported == exported).map(|row| (row.ours)())
}

fn by_base_name(base: &CStr, version: c_int, is_per_thread: bool) -> Option<*mut c_void> {
    let row = ROWS.iter().find(|row| row.base == base && row.is_per_thread == is_per_thread);
    row.filter(|row| version >= row.since).map(|row| (row.ours)())
}
