//! What runs inside the recorded process. The CUDA driver loads the library and calls [`begin`] when the process
//! first uses CUDA; from then on a thread writes the recording. Whatever fails here, the process continues.

#![expect(unsafe_code, reason = "CUPTI passes memory by address")]

mod accesses;
mod collect;
pub mod control;
mod cupti;
mod definitions;
mod driver;
mod environment;
mod files;
mod find;
mod flusher;
pub mod layout;
mod library;
mod numa;
mod nvml;
mod output;
mod pinned;
mod placement;
mod ring;
mod sampler;
pub mod settings;
mod signals;
mod switch;
mod timer;
mod torch;
mod triggers;
mod waits;
mod writer;

use std::ffi::{c_int, c_void};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use cupti::Cupti;
use flusher::Flusher;
pub use output::UNFINISHED;
pub use placement::node_of_memory;
use settings::{Settings, When};
pub use switch::{Extent, Switch};
use writer::{Message, Writer};

/// As CUPTI recommends, large enough that delivering them costs little.
const BUFFER: usize = 1 << 20;
/// Buffers kept for reuse: the launching thread would fault in new memory page by page.
const MAX_SPARE: usize = 8;
/// Filled buffers that wait for the writer thread, at most; beyond, CUPTI drops records and counts them. A ring promises
/// its memory; a file may have to wait for its disk.
const MAX_QUEUED_FOR_RING: usize = 8;
const MAX_QUEUED_FOR_FILE: usize = 512;

static RECORDING: OnceLock<Recording> = OnceLock::new();
/// Whether CUPTI is subscribed: if not, it is left alone.
static IS_SUBSCRIBED: AtomicBool = AtomicBool::new(false);
static QUEUED: AtomicUsize = AtomicUsize::new(0);
static MAX_QUEUED: AtomicUsize = AtomicUsize::new(MAX_QUEUED_FOR_FILE);
static SPARE: Mutex<Vec<Box<[u64]>>> = Mutex::new(Vec::new());

struct Recording {
    cupti: Cupti,
    messages: Mutex<Sender<Message>>,
    /// The recorded process: a forked child inherits this but has neither the thread nor CUDA.
    process: u32,
}

/// The recording of this process, if any.
fn recording() -> Option<&'static Recording> {
    RECORDING.get().filter(|recording| recording.process == std::process::id())
}

unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> c_int;
}

/// Starts to record this process, once; prints a line to standard error if it cannot.
pub fn begin() {
    if RECORDING.get().is_some() {
        return;
    }
    let Some(settings) = Settings::from_environment() else { return };
    // A bug here must not end the user's program.
    let begun = std::panic::catch_unwind(|| try_begin(settings));
    if let Err(why) = begun.unwrap_or_else(|_| Err("recording failed".to_owned())) {
        say(&why);
    }
}

/// Prints a line to standard error: the process has no other channel for it.
fn say(text: &str) {
    // It may be closed.
    let _ =
        std::io::stderr().write_all(format!("busbound: process {}: {text}\n", std::process::id()).as_bytes());
}

fn try_begin(settings: Settings) -> Result<(), String> {
    let found = find::cupti(&[])?;
    let cupti = Cupti::of(&found.library)
        .ok_or_else(|| format!("{} lacks functions that recording needs", found.place))?;
    if matches!(settings.when, When::Ring { .. }) {
        MAX_QUEUED.store(MAX_QUEUED_FOR_RING, Ordering::SeqCst);
    }
    let (sender, receiver) = channel();
    let process = std::process::id();
    if RECORDING.set(Recording { cupti, messages: Mutex::new(sender), process }).is_err() {
        return Ok(());
    }
    let mut writer = Writer::new(settings, receiver, cupti, &found.place);
    // Recording starts before the next call of the process, not when the thread gets scheduled.
    writer.prepare()?;
    signals::spawn("busbound", move || writer.run())
        .map_err(|error| format!("cannot start the writer thread: {error}"))?;
    // SAFETY: a function of this library, which is never unloaded.
    unsafe { atexit(end) };
    Ok(())
}

extern "C" fn buffer_requested(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
    if QUEUED.load(Ordering::Relaxed) >= MAX_QUEUED.load(Ordering::Relaxed) {
        // SAFETY: CUPTI passes three pointers to fill; without a buffer it drops records.
        unsafe { (*buffer, *size, *most) = (std::ptr::null_mut(), 0, 0) };
        return;
    }
    let spare = SPARE.lock().ok().and_then(|mut spare| spare.pop());
    let memory = spare.unwrap_or_else(|| vec![0u64; BUFFER / 8].into_boxed_slice());
    // SAFETY: CUPTI passes three pointers to fill; `buffer_completed` takes the memory back.
    unsafe {
        *buffer = Box::into_raw(memory).cast::<u8>();
        *size = BUFFER;
        *most = 0;
    }
}

extern "C" fn buffer_completed(_: *mut c_void, _: u32, buffer: *mut u8, size: usize, valid: usize) {
    let Some(memory) = taken_back(buffer, size) else { return };
    if valid > 0
        && let Some(recording) = recording()
        && let Ok(messages) = recording.messages.lock()
    {
        QUEUED.fetch_add(1, Ordering::Relaxed);
        let _ = messages.send(Message::Buffer(memory, valid));
    }
}

/// A buffer that CUPTI completed.
fn taken_back(buffer: *mut u8, size: usize) -> Option<Box<[u64]>> {
    // SAFETY: `buffer_requested` handed out this buffer with this size, and CUPTI no longer uses it.
    (!buffer.is_null())
        .then(|| unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(buffer.cast::<u64>(), size / 8)) })
}

/// Returns a written buffer to the pool.
fn keep(buffer: Box<[u64]>) {
    if let Ok(mut spare) = SPARE.lock()
        && spare.len() < MAX_SPARE
        && buffer.len() == BUFFER / 8
    {
        spare.push(buffer);
    }
}

extern "C" fn end() {
    let _ = std::panic::catch_unwind(finish);
}

/// How long the end of a program may wait for CUPTI, and then for the disk.
const AT_THE_END: Duration = Duration::from_secs(10);

fn finish() {
    let Some(recording) = recording() else { return };
    if IS_SUBSCRIBED.load(Ordering::SeqCst) {
        // While the GPU hangs, CUPTI does not return: the program must end all the same.
        match Flusher::start(recording.cupti) {
            Some(mut flusher) => flusher.flush(true, AT_THE_END),
            None => recording.cupti.flush(true),
        }
    }
    let (done, wait) = channel();
    // The lock is released before waiting: a thread that delivers a buffer in the meantime needs it.
    let messages = recording.messages.lock().ok().map(|sender| sender.clone());
    if messages.is_some_and(|messages| messages.send(Message::End(done)).is_ok()) {
        // A disk that does not respond must not block the process.
        let _ = wait.recv_timeout(AT_THE_END);
    }
}

/// Called by the CUDA driver.
#[cfg(feature = "injected")]
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> c_int {
    begin();
    1
}

/// Called by NVTX, which passes its ranges to a registered library: CUPTI handles them.
///
/// # Safety
/// Called by NVTX with its table of functions.
#[cfg(feature = "injected")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(table: *mut c_void) -> c_int {
    let Ok(found) = find::cupti(&[]) else { return 0 };
    let Some(address) = found.library.symbol(c"InitializeInjectionNvtx2") else { return 0 };
    // SAFETY: CUPTI's function of this name takes the same table.
    let forward = unsafe {
        std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> c_int>(address.as_ptr())
    };
    // SAFETY: as above.
    unsafe { forward(table) }
}
