//! The calls of the C library that the library needs.

use std::ffi::{c_char, c_int, c_long, c_ulong, c_void};
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::tally::Tally;

pub(super) const PAGE: usize = 4096;

const PROT_READ_WRITE: c_int = 1 | 2;
const MAP_SHARED: c_int = 1;
const MAP_PRIVATE_ANONYMOUS: c_int = 0x02 | 0x20;
pub(super) const MADV_HUGEPAGE: c_int = 14;
const MADV_DONTFORK: c_int = 10;
const SYS_MBIND: c_long = 237;
const MPOL_PREFERRED: c_ulong = 1;
const SIG_SETMASK: c_int = 2;
const SIGBUS: u64 = 7;
const SIGSEGV: u64 = 11;
const CLOCK_MONOTONIC: c_int = 1;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        length: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn munmap(at: *mut c_void, length: usize) -> c_int;
    pub(super) fn madvise(at: *mut c_void, length: usize, advice: c_int) -> c_int;
    pub(super) fn mincore(at: *mut c_void, length: usize, pages: *mut u8) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn sched_setaffinity(process: c_int, size: usize, mask: *const u64) -> c_int;
    fn sched_getaffinity(process: c_int, size: usize, mask: *mut u64) -> c_int;
    fn pthread_sigmask(how: c_int, new: *const [u64; 16], old: *mut [u64; 16]) -> c_int;
    fn sysconf(name: c_int) -> c_long;
    fn pthread_atfork(
        before: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: extern "C" fn(),
    ) -> c_int;
    fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    pub(super) fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    pub(super) fn dlvsym(library: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
    pub(super) fn dladdr(address: *const c_void, about: *mut AboutAddress) -> c_int;
}

/// `Dl_info`: which library an address belongs to.
#[repr(C)]
pub(super) struct AboutAddress {
    pub(super) file: *const c_char,
    pub(super) base: *mut c_void,
    pub(super) symbol: *const c_char,
    pub(super) address: *mut c_void,
}

/// Nanoseconds of a clock that never goes back.
pub(super) fn now() -> u64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: the structure is the one the call fills.
    unsafe { clock_gettime(CLOCK_MONOTONIC, &raw mut time) };
    u64::try_from(time.seconds * 1_000_000_000 + time.nanoseconds).unwrap_or_default()
}

/// New memory, on this NUMA node if there is one, in huge pages where the system has them.
pub(super) fn map(length: usize, node: Option<u32>) -> Option<*mut u8> {
    // SAFETY: asks for new memory; nothing else is at that address.
    let at = unsafe { mmap(std::ptr::null_mut(), length, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0) };
    if at as isize == -1 {
        return None;
    }
    // Both are wishes: without them the memory is slower, not wrong.
    if let Some(node) = node.filter(|&node| node < 64) {
        let mask: u64 = 1 << node;
        // SAFETY: the memory was just mapped; the kernel reads 64 bits of the mask.
        unsafe { syscall(SYS_MBIND, at, length, MPOL_PREFERRED, &raw const mask, 65_usize, 0_usize) };
    }
    // SAFETY: as above.
    unsafe { madvise(at, length, MADV_HUGEPAGE) };
    // Otherwise the first write after a fork gives this process another page, and the GPU keeps reading the old one.
    // SAFETY: as above; a forked child never uses the memory.
    unsafe { madvise(at, length, MADV_DONTFORK) };
    Some(at.cast())
}

/// Gives memory of [`map`] back.
pub(super) fn unmap(at: *mut u8, length: usize) {
    // SAFETY: the memory came from `map`, and the caller no longer uses it.
    unsafe { munmap(at.cast(), length) };
}

/// A tally in a new file; `None` if it cannot be written.
pub(super) fn map_tally(path: &Path) -> Option<&'static Tally> {
    use std::io::Write;
    // A process that has replaced itself with another program goes on counting in its file.
    let mut file =
        std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).ok()?;
    let length = size_of::<Tally>();
    if file.metadata().ok()?.len() < length as u64 {
        // Written, not only sized: on a full disk the first store would be a signal.
        file.write_all(&[0; size_of::<Tally>()]).ok()?;
    }
    // SAFETY: asks for a new mapping of an open file.
    let at = unsafe { mmap(std::ptr::null_mut(), length, PROT_READ_WRITE, MAP_SHARED, file.as_raw_fd(), 0) };
    // SAFETY: zeros are a valid tally, the mapping has its size and is never removed.
    (at as isize != -1).then(|| unsafe { &*at.cast::<Tally>() })
}

/// A set of CPUs, as the scheduler takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cpus(pub(super) [u64; 16]);

impl Cpus {
    /// Those that the calling thread may use.
    pub(super) fn allowed() -> Option<Self> {
        let mut mask = [0; 16];
        // SAFETY: the mask has the size given.
        let code = unsafe { sched_getaffinity(0, size_of_val(&mask), mask.as_mut_ptr()) };
        (code == 0).then_some(Self(mask))
    }

    pub(super) fn count(self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Binds the calling thread; if it cannot be bound, it runs where it may.
    pub(super) fn bind(self) {
        // SAFETY: the mask has the size given.
        unsafe { sched_setaffinity(0, size_of_val(&self.0), self.0.as_ptr()) };
    }

    /// Those in both, or `None` if there are none.
    pub(super) fn within(self, other: Self) -> Option<Self> {
        let mut both = self.0;
        for (mine, theirs) in both.iter_mut().zip(other.0) {
            *mine &= theirs;
        }
        both.iter().any(|&word| word != 0).then_some(Self(both))
    }
}

/// CPUs of the machine.
pub(super) fn online_cpus() -> usize {
    const ONLINE: c_int = 84;
    // SAFETY: asks for a number.
    usize::try_from(unsafe { sysconf(ONLINE) }).unwrap_or(1)
}

/// Runs `work` with signals blocked: threads started by it never run the program's signal handlers. Those that a bad address
/// raises are left: a program may handle them by bringing in the memory.
pub(super) fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    let (mut all, mut before) = ([u64::MAX; 16], [0; 16]);
    all[0] &= !(1 << (SIGBUS - 1) | 1 << (SIGSEGV - 1));
    // SAFETY: both sets have the size of the system's own.
    unsafe { pthread_sigmask(SIG_SETMASK, &raw const all, &raw mut before) };
    let result = work();
    // SAFETY: as above.
    unsafe { pthread_sigmask(SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
    result
}

/// Calls `child` in every process that this one forks.
pub(super) fn at_fork(child: extern "C" fn()) {
    // SAFETY: the function is part of this library, which is never unloaded.
    unsafe { pthread_atfork(None, None, child) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_bound_runs_there_and_others_stay() {
        let allowed = Cpus::allowed().unwrap();
        let word = allowed.0.iter().position(|&word| word != 0).unwrap();
        let mut one = Cpus([0; 16]);
        one.0[word] = 1 << allowed.0[word].trailing_zeros();
        std::thread::scope(|scope| {
            let bound = scope.spawn(move || {
                one.bind();
                Cpus::allowed()
            });
            assert_eq!(bound.join().unwrap(), Some(one));
        });
        assert_eq!(Cpus::allowed(), Some(allowed));
        // None of a node that is not there: it runs where it may.
        Cpus([0; 16]).bind();
        assert_eq!(Cpus::allowed(), Some(allowed));
    }
}
