//! What runs inside the recorded process. The CUDA driver loads the library and calls [`begin`] when the process first uses
//! CUDA; a thread writes from then on. Whatever goes wrong here, the process runs on.

#![expect(unsafe_code, reason = "CUPTI hands over memory by address")]

mod cupti;
mod find;
pub mod layout;
mod library;
mod nvml;
mod waits;
mod writer;

use std::ffi::{c_int, c_void};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use cupti::Cupti;
use writer::{Told, Window, Writer};

/// Where the recording goes: the file of the first process that uses CUDA; others add their number to its name.
pub const TO: &str = "BUSBOUND_RECORD_TO";
/// Seconds before recording begins, and seconds that it lasts.
pub const DELAY: &str = "BUSBOUND_RECORD_DELAY";
pub const DURATION: &str = "BUSBOUND_RECORD_DURATION";

/// As CUPTI advises, large enough that handing them over costs little.
const BUFFER: usize = 1 << 20;
/// Buffers kept for the next time: memory new from the system is faulted in page by page, by the thread that launches.
const MOST_SPARE: usize = 16;

static RECORDING: OnceLock<Recording> = OnceLock::new();
static SPARE: Mutex<Vec<Box<[u64]>>> = Mutex::new(Vec::new());

struct Recording {
    cupti: Cupti,
    told: Mutex<Sender<Told>>,
    /// Which process it is of: one that forks hands all this on to a child that has neither the thread nor CUDA.
    process: u32,
}

/// This process's recording, if it has one.
fn recording() -> Option<&'static Recording> {
    RECORDING.get().filter(|recording| recording.process == std::process::id())
}

unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> c_int;
}

/// Begins to record this process, once; says in a line to standard error why not, if it cannot.
pub fn begin() {
    if RECORDING.get().is_some() {
        return;
    }
    let Some(to) = std::env::var_os(TO) else { return };
    // A mistake of ours must not end a program of somebody else's.
    let begun = std::panic::catch_unwind(|| try_begin(Path::new(&to)));
    if let Err(why) = begun.unwrap_or_else(|_| Err("recording failed".to_owned())) {
        eprint_line(&format!("busbound: process {}: {why}\n", std::process::id()));
    }
}

#[expect(clippy::print_stderr, reason = "the process has no other way to hear of it")]
fn eprint_line(text: &str) {
    eprint!("{text}");
}

fn try_begin(to: &Path) -> Result<(), String> {
    let found = find::cupti()?;
    let mut cupti = Cupti::of(&found.library)
        .ok_or_else(|| format!("{} lacks functions that recording needs", found.place))?;
    // First CUPTI, then the file: where another profiler has it, no empty file is left.
    cupti.take(buffer_requested, buffer_completed, waits::called)?;
    let begun = create(to).and_then(|(file, path)| {
        Writer::new(cupti, file, &found.place).map_err(|error| format!("{}: {error}", path.display()))
    });
    let writer = match begun {
        Ok(writer) => writer,
        // Others may want it.
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
    if RECORDING.set(Recording { cupti, told: Mutex::new(sender), process }).is_err() {
        return Ok(());
    }
    // Without delay recording begins before the process's next call, and not when the thread comes to it.
    let begun: Option<Vec<u32>> = window.delay.is_zero().then(|| cupti.begin(waits::calls(&cupti)));
    let has_begun = begun.is_some();
    let thread = std::thread::Builder::new().name("busbound".to_owned());
    let mut writer = writer;
    for kind in begun.iter().flatten() {
        writer.note(&format!("CUPTI does not record activity kind {kind} here"));
    }
    thread
        .spawn(move || writer.run(&receiver, window, has_begun))
        .map_err(|error| format!("no thread to write with: {error}"))?;
    // SAFETY: a function of this library, which is never unloaded.
    unsafe { atexit(end) };
    Ok(())
}

/// The file asked for, or, where another process of the run has it, one beside it.
fn create(to: &Path) -> Result<(File, PathBuf), String> {
    let own = to.with_extension(format!("{}.bbt", std::process::id()));
    for path in [to, own.as_path()] {
        if let Ok(file) = OpenOptions::new().write(true).create_new(true).open(path) {
            return Ok((file, path.to_owned()));
        }
    }
    Err(format!("cannot write {} nor {}, so nothing is recorded", to.display(), own.display()))
}

extern "C" fn buffer_requested(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
    let spare = SPARE.lock().ok().and_then(|mut spare| spare.pop());
    let memory = spare.unwrap_or_else(|| vec![0u64; BUFFER / 8].into_boxed_slice());
    // SAFETY: CUPTI gives three places to fill; the memory is given back in `buffer_completed`.
    unsafe {
        *buffer = Box::into_raw(memory).cast::<u8>();
        *size = BUFFER;
        *most = 0;
    }
}

extern "C" fn buffer_completed(_: *mut c_void, _: u32, buffer: *mut u8, size: usize, valid: usize) {
    if buffer.is_null() {
        return;
    }
    // SAFETY: it is what `buffer_requested` gave away, of this size, and CUPTI has done with it.
    let memory = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(buffer.cast::<u64>(), size / 8)) };
    if valid > 0
        && let Some(recording) = recording()
        && let Ok(told) = recording.told.lock()
    {
        let _ = told.send(Told::Buffer(memory, valid));
    }
}

/// Takes back a buffer that is written.
fn keep(buffer: Box<[u64]>) {
    if let Ok(mut spare) = SPARE.lock()
        && spare.len() < MOST_SPARE
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
    // The lock is given back before waiting: whoever hands over a buffer meanwhile takes it.
    let told = recording.told.lock().ok().map(|told| told.clone());
    if told.is_some_and(|told| told.send(Told::End(done)).is_ok()) {
        // A disk that does not answer must not keep the process.
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

/// Called by NVTX, which hands its ranges to whoever it is told of: CUPTI takes them.
///
/// # Safety
/// Called by NVTX with its table of functions.
#[cfg(feature = "injected")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(table: *mut c_void) -> c_int {
    let Ok(found) = find::cupti() else { return 0 };
    let Some(address) = found.library.symbol(c"InitializeInjectionNvtx2") else { return 0 };
    // SAFETY: CUPTI's function of this name takes the same table.
    let forward = unsafe {
        std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> c_int>(address.as_ptr())
    };
    // SAFETY: as above.
    unsafe { forward(table) }
}
