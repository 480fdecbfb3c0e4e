//! The functions behind those that this library replaces: the C library's own `dlsym`, and the driver's.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use super::system::{dlopen, dlvsym};

/// The C library's own `dlsym`. Found by its versions: newer C libraries have it in another file.
pub(super) static DLSYM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
const VERSIONS: [&CStr; 2] = [c"GLIBC_2.34", c"GLIBC_2.2.5"];
/// `RTLD_NEXT`: the next library after the caller's.
const NEXT: *mut c_void = usize::MAX as *mut c_void;

const LAZY: c_int = 1;
/// Only if it is already loaded.
const LOADED_ONLY: c_int = 4;

type Lookup = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

pub(super) extern "C" fn find_dlsym() {
    for version in VERSIONS {
        // SAFETY: C strings; the handle is the one that means the next library.
        let found = unsafe { dlvsym(NEXT, c"dlsym".as_ptr(), version.as_ptr()) };
        if !found.is_null() {
            DLSYM.store(next_hook(found), Relaxed);
            return;
        }
    }
    DLSYM.store(nothing as *mut c_void, Relaxed);
}

/// Other libraries that are loaded first may replace `dlsym` too: theirs is asked then, and asks the C library.
fn next_hook(dlsym: *mut c_void) -> *mut c_void {
    // SAFETY: the address is that of `dlsym`.
    let lookup = unsafe { std::mem::transmute::<*mut c_void, Lookup>(dlsym) };
    // SAFETY: the handle is the one that means the next library after this one.
    let next = unsafe { lookup(NEXT, c"dlsym".as_ptr()) };
    if next.is_null() { dlsym } else { next }
}

/// Stands for `dlsym` in a C library of unknown version.
extern "C" fn nothing(_: *mut c_void, _: *const c_char) -> *mut c_void {
    null_mut()
}

pub(super) fn dlsym_of_libc(library: *mut c_void, name: &CStr) -> *mut c_void {
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
