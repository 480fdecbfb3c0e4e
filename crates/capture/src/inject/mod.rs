//! What runs inside the recorded process. The CUDA driver loads the library and calls [`begin`] when the process
//! first uses CUDA; from then on a thread writes the recording. Whatever fails here, the process continues.

#![expect(unsafe_code, reason = "CUPTI passes memory by address")]

mod cupti;
mod find;
pub mod layout;
mod library;
mod nvml;
mod switch;
mod waits;
mod writer;

use std::ffi::{c_int, c_void};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use cupti::Cupti;
pub use switch::{Extent, Switch};
use writer::{Message, Window, Writer};

/// Where to write the recording: the file for the first process that uses CUDA; other processes add their id to its
/// name.
pub const TO: &str = "BUSBOUND_RECORD_TO";
/// Seconds before recording starts, and seconds that it lasts.
pub const DELAY: &str = "BUSBOUND_RECORD_DELAY";
pub const DURATION: &str = "BUSBOUND_RECORD_DURATION";

/// As CUPTI recommends, large enough that delivering them costs little.
const BUFFER: usize = 1 << 20;
/// Buffers kept for reuse: the launching thread would fault in new memory page by page.
const MAX_SPARE: usize = 16;

static RECORDING: OnceLock<Recording> = OnceLock::new();
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
    let Some(to) = std::env::var_os(TO) else { return };
    // A bug here must not end the user's program.
    let begun = std::panic::catch_unwind(|| try_begin(Path::new(&to)));
    if let Err(why) = begun.unwrap_or_else(|_| Err("recording failed".to_owned())) {
        eprint_line(&format!("busbound: process {}: {why}\n", std::process::id()));
    }
}

#[expect(clippy::print_stderr, reason = "the process has no other channel for it")]
fn eprint_line(text: &str) {
    eprint!("{text}");
}

fn try_begin(to: &Path) -> Result<(), String> {
    let found = find::cupti(&[])?;
    let mut cupti = Cupti::of(&found.library)
        .ok_or_else(|| format!("{} lacks functions that recording needs", found.place))?;
    // First CUPTI, then the file: if another profiler uses CUPTI, no empty file is left.
    cupti.take(buffer_requested, buffer_completed, waits::called)?;
    let begun = create(to).and_then(|(file, path)| {
        Writer::new(cupti, file, &found.place).map_err(|error| format!("{}: {error}", path.display()))
    });
    let writer = match begun {
        Ok(writer) => writer,
        // Other profilers may need CUPTI.
        Err(why) => {
            cupti.release();
            return Err(why);
        }
    };
    let (sender, receiver) = channel();
    let seconds = |name: &str| {
        let text = std::env::var(name).ok()?;
        Duration::try_from_secs_f64(text.parse().ok()?).ok()
    };
    let window = Window { delay: seconds(DELAY).unwrap_or_default(), duration: seconds(DURATION) };
    let process = std::process::id();
    if RECORDING.set(Recording { cupti, messages: Mutex::new(sender), process }).is_err() {
        return Ok(());
    }
    // Without a delay, recording starts before the next call of the process, not when the thread gets scheduled.
    let begun: Option<Vec<u32>> = window.delay.is_zero().then(|| cupti.begin(waits::calls(&cupti)));
    let has_begun = begun.is_some();
    let thread = std::thread::Builder::new().name("busbound".to_owned());
    let mut writer = writer;
    for kind in begun.iter().flatten() {
        writer.note(&format!("CUPTI does not record activity kind {kind} here"));
    }
    thread
        .spawn(move || writer.run(&receiver, window, has_begun))
        .map_err(|error| format!("cannot start the writer thread: {error}"))?;
    // SAFETY: a function of this library, which is never unloaded.
    unsafe { atexit(end) };
    Ok(())
}

/// The requested file, or one next to it if another process of the run uses that one.
fn create(to: &Path) -> Result<(File, PathBuf), String> {
    let own = to.with_extension(format!("{}.bbt", std::process::id()));
    for path in [to, own.as_path()] {
        if let Ok(file) = OpenOptions::new().write(true).create_new(true).open(path) {
            return Ok((file, path.to_owned()));
        }
    }
    Err(format!("cannot write {} or {}; nothing is recorded", to.display(), own.display()))
}

extern "C" fn buffer_requested(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
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

fn finish() {
    let Some(recording) = recording() else { return };
    recording.cupti.flush(true);
    let (done, wait) = channel();
    // The lock is released before waiting: a thread that delivers a buffer in the meantime needs it.
    let messages = recording.messages.lock().ok().map(|sender| sender.clone());
    if messages.is_some_and(|messages| messages.send(Message::End(done)).is_ok()) {
        // A disk that does not respond must not block the process.
        let _ = wait.recv_timeout(Duration::from_secs(10));
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
