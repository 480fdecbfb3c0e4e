//! The slots of `busbound.offload`'s ring on CUDA's streams: one call from Python for all that one use of a slot needs.
//!
//! The functions are those of the CUDA runtime that torch has loaded. They may wait for room in the driver's queue, and
//! what is in the queue may wait for Python, so they run without the GIL: it is given away once per call from Python.

#![expect(unsafe_code, reason = "the CUDA runtime is called by the addresses of its functions")]

use std::ffi::{c_int, c_uint, c_void};
use std::mem::transmute;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

type CopyAsync = unsafe extern "C" fn(*mut c_void, *const c_void, usize, c_int, *mut c_void) -> c_int;
type WaitEvent = unsafe extern "C" fn(*mut c_void, *mut c_void, c_uint) -> c_int;
type RecordEvent = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;
type IsCapturing = unsafe extern "C" fn(*mut c_void, *mut c_int) -> c_int;
type LastError = unsafe extern "C" fn() -> c_int;

/// As CUDA numbers the directions of copies.
const HOST_TO_DEVICE: c_int = 1;
/// No stream has this address.
const NOBODY: usize = usize::MAX;

/// A stream or an event by its address.
#[derive(Debug, Clone, Copy)]
struct Handle(usize);

impl Handle {
    fn pointer(self) -> *mut c_void {
        with_exposed_provenance_mut(self.0)
    }
}

/// CUDA's functions; each says whether it worked.
#[pyclass(frozen, module = "busbound._native")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct CudaRuntime {
    copy_async: CopyAsync,
    wait_event: WaitEvent,
    record_event: RecordEvent,
    is_capturing: IsCapturing,
    last_error: LastError,
}

#[pymethods]
impl CudaRuntime {
    /// The addresses of `cudaMemcpyAsync`, `cudaStreamWaitEvent`, `cudaEventRecord`, `cudaStreamIsCapturing` and
    /// `cudaGetLastError`.
    #[new]
    fn new(
        copy_async: usize,
        wait_event: usize,
        record_event: usize,
        is_capturing: usize,
        last_error: usize,
    ) -> PyResult<Self> {
        if [copy_async, wait_event, record_event, is_capturing, last_error].contains(&0) {
            return Err(PyValueError::new_err("a function of CUDA has no address"));
        }
        // SAFETY: none is null, and the caller, which is _runtime.py, found each in the runtime by its name.
        unsafe {
            Ok(Self {
                copy_async: transmute::<*const (), CopyAsync>(with_exposed_provenance(copy_async)),
                wait_event: transmute::<*const (), WaitEvent>(with_exposed_provenance(wait_event)),
                record_event: transmute::<*const (), RecordEvent>(with_exposed_provenance(record_event)),
                is_capturing: transmute::<*const (), IsCapturing>(with_exposed_provenance(is_capturing)),
                last_error: transmute::<*const (), LastError>(with_exposed_provenance(last_error)),
            })
        }
    }

    /// Whether a CUDA graph is being captured on a stream; `None` if CUDA does not say.
    fn is_capturing(&self, stream: usize) -> Option<bool> {
        let mut status: c_int = 0;
        // SAFETY: torch gave this stream, and the status is a live integer. The call never waits.
        let code = unsafe { (self.is_capturing)(Handle(stream).pointer(), &raw mut status) };
        self.noted(code).then_some(status != 0)
    }
}

impl CudaRuntime {
    fn wait(&self, stream: Handle, event: Handle) -> bool {
        // SAFETY: torch gave the stream and the event, and keeps both as long as the ring.
        self.noted(unsafe { (self.wait_event)(stream.pointer(), event.pointer(), 0) })
    }

    fn record(&self, event: Handle, stream: Handle) -> bool {
        // SAFETY: torch gave the stream and the event, and keeps both as long as the ring.
        self.noted(unsafe { (self.record_event)(event.pointer(), stream.pointer()) })
    }

    fn copy(&self, fill: &Fill) -> bool {
        let (target, source) =
            (with_exposed_provenance_mut(fill.target), with_exposed_provenance(fill.source));
        let stream = fill.copies.pointer();
        // SAFETY: a slot and a block in host memory, both at least this long and kept as long as the ring.
        self.noted(unsafe { (self.copy_async)(target, source, fill.nbytes, HOST_TO_DEVICE, stream) })
    }

    /// Whether a call worked. CUDA reports an error again at the next launch, where it would look like one of that kernel.
    fn noted(&self, code: c_int) -> bool {
        if code != 0 {
            // SAFETY: it has no arguments.
            let _ = unsafe { (self.last_error)() };
        }
        code == 0
    }
}

/// One slot: its event "filled", its event "released", and who uses it. What does not work is done again by torch.
#[pyclass(frozen, module = "busbound._native")]
#[derive(Debug)]
pub(crate) struct Lane {
    runtime: CudaRuntime,
    copies: Handle,
    filled: Handle,
    released: Handle,
    /// The stream that uses the slot.
    user: AtomicUsize,
}

#[pymethods]
impl Lane {
    #[new]
    fn new(runtime: &CudaRuntime, copies: usize, filled: usize, released: usize) -> Self {
        let (copies, filled, released) = (Handle(copies), Handle(filled), Handle(released));
        Self { runtime: *runtime, copies, filled, released, user: AtomicUsize::new(NOBODY) }
    }

    /// Lets a stream wait until the slot is filled. Whether that worked.
    #[pyo3(name = "use")]
    fn enter(&self, py: Python<'_>, stream: usize) -> bool {
        py.detach(|| {
            let is_other = self.user.load(Ordering::Relaxed) != stream;
            let (runtime, stream) = (&self.runtime, Handle(stream));
            // The next release stands for the uses of both streams.
            let works =
                (!is_other || runtime.wait(stream, self.released)) && runtime.wait(stream, self.filled);
            if works {
                self.user.store(stream.0, Ordering::Relaxed);
            }
            works
        })
    }

    /// What the stream has been given so far is the last use of the slot. Whether that worked.
    fn release(&self, py: Python<'_>) -> bool {
        py.detach(|| self.released())
    }

    /// Releases this slot, then fills one. Whether both worked.
    fn turn(&self, py: Python<'_>, fill: &Fill) -> bool {
        py.detach(|| self.released() && fill.filled())
    }

    /// The stream that uses the slot, which torch's own stream takes the place of.
    fn take_user(&self) -> Option<usize> {
        let user = self.user.swap(NOBODY, Ordering::Relaxed);
        (user != NOBODY).then_some(user)
    }
}

impl Lane {
    fn released(&self) -> bool {
        let user = self.user.load(Ordering::Relaxed);
        user != NOBODY && self.runtime.record(self.released, Handle(user))
    }
}

/// The copy of one block into one slot, after the last use of the slot.
#[pyclass(frozen, module = "busbound._native")]
#[derive(Debug)]
pub(crate) struct Fill {
    runtime: CudaRuntime,
    copies: Handle,
    filled: Handle,
    released: Handle,
    target: usize,
    source: usize,
    nbytes: usize,
}

#[pymethods]
impl Fill {
    #[new]
    fn new(lane: &Lane, target: usize, source: usize, nbytes: usize) -> Self {
        let Lane { runtime, copies, filled, released, .. } = *lane;
        Self { runtime, copies, filled, released, target, source, nbytes }
    }

    /// Whether that worked.
    fn __call__(&self, py: Python<'_>) -> bool {
        py.detach(|| self.filled())
    }
}

impl Fill {
    fn filled(&self) -> bool {
        let runtime = &self.runtime;
        runtime.wait(self.copies, self.released)
            && runtime.copy(self)
            && runtime.record(self.filled, self.copies)
    }
}
