//! How programs get the driver's functions, and how they get ours instead: by linking with the driver (the loader finds
//! the exported functions of [`super::entry`] first), by `dlsym` (replaced here), or by `cuGetProcAddress` (replaced in
//! `entry`). CUDA's runtime, linked in either way, uses the last two.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;

use super::entry;
use super::real::dlsym_of_libc;
use super::system::{AboutAddress, dladdr};

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
        dlsym = sym super::real::DLSYM,
        find = sym super::real::find_dlsym,
        lookup = sym lookup,
    )
}
