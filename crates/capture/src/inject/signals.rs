//! Signals: one that asks for a dump, and those that end the process. A handler only sets numbers and waits for the writer
//! thread; everything else is forbidden there. Where the program has a handler of its own, that stays.

#![expect(unsafe_code, reason = "the C library's signal functions are called here")]

use std::ffi::{c_int, c_long, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};

/// Signals whose default is to end the process: illegal instruction, abort, bus error, arithmetic, segmentation fault,
/// and the request to end.
const FATAL: [c_int; 6] = [4, 6, 7, 8, 11, 15];
/// How long a dying process waits for its dump.
const MILLISECONDS: u32 = 1_000;

static FATAL_SIGNAL: AtomicI32 = AtomicI32::new(0);
static IS_DUMPED: AtomicBool = AtomicBool::new(false);
static IS_ASKED: AtomicBool = AtomicBool::new(false);
/// The recorded process and the writer thread: a forked child has no such thread, and the thread cannot wait for itself.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static WRITER: AtomicUsize = AtomicUsize::new(0);

/// `struct sigaction` of glibc on x86-64 and aarch64.
#[repr(C)]
struct Action {
    handler: *const c_void,
    mask: [u64; 16],
    flags: c_int,
    restorer: *const c_void,
}

#[repr(C)]
struct Time {
    seconds: c_long,
    nanos: c_long,
}

const ON_ALTERNATE_STACK: c_int = 0x0800_0000;
const SET_MASK: c_int = 2;
const RESTART: c_int = 0x1000_0000;

unsafe extern "C" {
    fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int;
    fn raise(signal: c_int) -> c_int;
    fn getpid() -> c_int;
    fn pthread_self() -> usize;
    fn pthread_sigmask(how: c_int, new: *const [u64; 16], old: *mut [u64; 16]) -> c_int;
    fn nanosleep(time: *const Time, left: *mut Time) -> c_int;
}

fn action(handler: *const c_void) -> Action {
    Action { handler, mask: [0; 16], flags: ON_ALTERNATE_STACK | RESTART, restorer: null() }
}

/// Installs a handler if the signal has its default; whether it did.
fn install(signal: c_int, handler: extern "C" fn(c_int)) -> bool {
    let (mut old, new) = (action(null()), action(handler as *const c_void));
    // SAFETY: both structures are as the C library defines them, and the handler is never unloaded.
    unsafe {
        if sigaction(signal, null(), &raw mut old) != 0 || !old.handler.is_null() {
            return false;
        }
        sigaction(signal, &raw const new, null_mut()) == 0
    }
}

/// Starts a thread that gets none of the program's signals: they interrupt the threads that wait for them, as before.
///
/// # Errors
/// Those of the operating system.
pub(super) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let (all, mut before) = ([u64::MAX; 16], [0; 16]);
    // SAFETY: both are sets of signals as the C library defines them. A new thread inherits the set of this one.
    unsafe { pthread_sigmask(SET_MASK, &raw const all, &raw mut before) };
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    // SAFETY: as above.
    unsafe { pthread_sigmask(SET_MASK, &raw const before, null_mut()) };
    spawned.map(|_| ())
}

/// Called by the writer thread before it watches for signals.
pub(super) fn watch_crashes() {
    PROCESS.store(std::process::id(), Ordering::SeqCst);
    // SAFETY: takes nothing and cannot fail.
    WRITER.store(unsafe { pthread_self() }, Ordering::SeqCst);
    for signal in FATAL {
        install(signal, dying);
    }
}

/// Lets this signal ask for a dump.
///
/// # Errors
/// If the program has a handler for it.
pub(super) fn watch_requests(signal: c_int) -> Result<(), String> {
    if install(signal, asked) {
        return Ok(());
    }
    Err(format!(
        "the program handles signal {signal} itself, or it cannot be handled: use busbound record --pid {} --dump",
        std::process::id()
    ))
}

/// Whether a signal has asked for a dump since the last call of this function.
pub(super) fn take_request() -> bool {
    IS_ASKED.load(Ordering::Relaxed) && IS_ASKED.swap(false, Ordering::SeqCst)
}

/// The signal that the process is dying of.
pub(super) fn fatal() -> Option<c_int> {
    Some(FATAL_SIGNAL.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
}

/// The dump is written: the process may end.
pub(super) fn is_dumped() {
    IS_DUMPED.store(true, Ordering::SeqCst);
}

extern "C" fn asked(_: c_int) {
    IS_ASKED.store(true, Ordering::SeqCst);
}

extern "C" fn dying(signal: c_int) {
    // SAFETY: only functions that may be called in a handler; the structures are as the C library defines them.
    unsafe {
        let is_ours = u32::try_from(getpid()) == Ok(PROCESS.load(Ordering::SeqCst));
        if is_ours && pthread_self() != WRITER.load(Ordering::SeqCst) {
            FATAL_SIGNAL.store(signal, Ordering::SeqCst);
            let pause = Time { seconds: 0, nanos: 5_000_000 };
            for _ in 0..MILLISECONDS / 5 {
                if IS_DUMPED.load(Ordering::SeqCst) {
                    break;
                }
                nanosleep(&raw const pause, null_mut());
            }
        }
        // The signal stays blocked until this handler returns; then the process ends by it, where it was.
        let default = Action { handler: null(), mask: [0; 16], flags: 0, restorer: null() };
        sigaction(signal, &raw const default, null_mut());
        raise(signal);
    }
}

/// The name of a signal, as people know it.
pub(super) fn name(signal: c_int) -> &'static str {
    match signal {
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        11 => "SIGSEGV",
        15 => "SIGTERM",
        _ => "a signal",
    }
}
