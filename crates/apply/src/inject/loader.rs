//! How programs get the driver's functions, and how they get ours instead: by linking with the driver (the loader finds
//! the exported functions of [`super::entry`] first), by `dlsym` (replaced here), or by `cuGetProcAddress` (replaced in
//! `entry`). CUDA's runtime, linked in either way, uses the last two.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use super::entry;
use super::system::{AboutAddress, dladdr, dlopen, dlvsym};

/// The C library's own `dlsym`. Found by its versions: newer C libraries have it in another file.
static DLSYM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
const VERSIONS: [&CStr; 2] = [c"GLIBC_2.34", c"GLIBC_2.2.5"];
/// `RTLD_NEXT`: the next library after the caller's.
const NEXT: *mut c_void = usize::MAX as *mut c_void;

const LAZY: c_int = 1;
/// Only if it is already loaded.
const LOADED_ONLY: c_int = 4;

type Lookup = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

extern "C" fn find_dlsym() {
    for version in VERSIONS {
        // SAFETY: C strings; the handle is the one that means the next library.
        let found = unsafe { dlvsym(NEXT, c"dlsym".as_ptr(), version.as_ptr()) };
        if !found.is_null() {
            DLSYM.store(found, Relaxed);
            return;
        }
    }
    DLSYM.store(nothing as *mut c_void, Relaxed);
}

/// Stands for `dlsym` in a C library of unknown version.
extern "C" fn nothing(_: *mut c_void, _: *const c_char) -> *mut c_void {
    null_mut()
}

fn dlsym_of_libc(library: *mut c_void, name: &CStr) -> *mut c_void {
    if DLSYM.load(Relaxed).is_null() {
        find_dlsym();
    }
    // SAFETY: the address is that of `dlsym`.
    let lookup = unsafe { std::mem::transmute::<*mut c_void, Lookup>(DLSYM.load(Relaxed)) };
    // SAFETY: the handle is one of the loader's, the name a C string.
    unsafe { lookup(library, name.as_ptr()) }
}

/// A function of the driver, if this process has loaded it.
pub(super) fn in_driver(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a C string.
    let driver = unsafe { dlopen(c"libcuda.so.1".as_ptr(), LAZY | LOADED_ONLY) };
    if driver.is_null() {
        return None;
    }
    let found = dlsym_of_libc(driver, name);
    (!found.is_null()).then_some(found)
}

/// True if the address is in the driver's library: other libraries have functions of the same names.
fn is_in_driver(address: *mut c_void) -> bool {
    let mut about = AboutAddress {
        file: std::ptr::null(),
        base: null_mut(),
        symbol: std::ptr::null(),
        address: null_mut(),
    };
    // SAFETY: fills the structure.
    if unsafe { dladdr(address, &raw mut about) } == 0 || about.file.is_null() {
        return false;
    }
    // SAFETY: the loader's own string.
    let file = unsafe { CStr::from_ptr(about.file) }.to_bytes();
    let name = file.rsplit(|&byte| byte == b'/').next().unwrap_or(file);
    name.starts_with(b"libcuda.so")
}

/// The program asked a library for a function.
extern "C" fn lookup(library: *mut c_void, name: *const c_char) -> *mut c_void {
    if name.is_null() {
        return null_mut();
    }
    // SAFETY: the program passes a C string, as `dlsym` requires.
    let name = unsafe { CStr::from_ptr(name) };
    let found = dlsym_of_libc(library, name);
    if found.is_null() || !name.to_bytes().starts_with(b"cu") {
        return found;
    }
    match entry::replacement(name) {
        Some(ours) if is_in_driver(found) => ours,
        _ => found,
    }
}

/// `dlsym`, replaced: the driver's copies are ours, all else is what the C library says. Lookups relative to the caller
/// (`RTLD_NEXT`, `RTLD_DEFAULT`) are jumps, so that the C library sees the caller's address and not this library's.
///
/// # Safety
/// As the C library's.
#[cfg(feature = "injected")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void {
    std::arch::naked_asm!(
        "cmp qword ptr [rip + {dlsym}], 0",
        "jne 2f",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {find}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "2:",
        "lea rax, [rdi + 1]",
        "cmp rax, 1",
        "ja {lookup}",
        "jmp qword ptr [rip + {dlsym}]",
        dlsym = sym DLSYM,
        find = sym find_dlsym,
        lookup = sym lookup,
    )
}
