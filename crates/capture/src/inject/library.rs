//! Libraries of the recorded process, by name or path, and their symbols.

#![expect(unsafe_code, reason = "the dynamic loader is called here")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::NonNull;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

const LAZY: c_int = 1;
/// Only if it is already loaded.
const LOADED_ONLY: c_int = 4;

/// A library that stays loaded until the process ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Library {
    handle: NonNull<c_void>,
}

// SAFETY: the handle is opaque to us, the loader may be called from any thread, and it is never closed.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    pub(super) fn loaded(path: &str) -> Option<Self> {
        Self::with(path, LAZY | LOADED_ONLY)
    }

    pub(super) fn load(path: &str) -> Option<Self> {
        Self::with(path, LAZY)
    }

    fn with(path: &str, flags: c_int) -> Option<Self> {
        let path = CString::new(path).ok()?;
        // SAFETY: a C string that outlives the call; the constructors that run are those of NVIDIA's libraries.
        let handle = unsafe { dlopen(path.as_ptr(), flags) };
        NonNull::new(handle).map(|handle| Self { handle })
    }

    /// The address of a function, if the library has it.
    pub(super) fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the handle came from `dlopen` and was not closed; the name is a C string.
        NonNull::new(unsafe { dlsym(self.handle.as_ptr(), name.as_ptr()) })
    }
}

/// Text in the recorded process; empty for a null address.
///
/// # Safety
/// `address` is 0 or points to a C string that is valid during the call.
pub(super) unsafe fn text_at<'a>(address: usize) -> &'a [u8] {
    if address == 0 {
        return b"";
    }
    // SAFETY: guaranteed by the caller.
    unsafe { CStr::from_ptr(address as *const c_char) }.to_bytes()
}
