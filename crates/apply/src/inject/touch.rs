//! New memory is slow to write: every page is a fault. The threads bring their pages in, each its own part, before they
//! write to them.

use super::system::{PAGE, madvise, mincore};

/// `MADV_POPULATE_WRITE`, in Linux 5.14 and newer; older ones refuse it, and writing does the same more slowly.
const POPULATE_WRITE: i32 = 23;

/// True if the memory at this address was never written.
pub(super) fn is_new(at: *mut u8) -> bool {
    let mut is_there = 1u8;
    let page = ((at as usize) & !(PAGE - 1)) as *mut std::ffi::c_void;
    // SAFETY: one byte for one page, as the call wants; any address is allowed.
    let asked = unsafe { mincore(page, PAGE, &raw mut is_there) };
    asked == 0 && is_there & 1 == 0
}

/// Brings in the pages of memory that is about to be written, if they are new. Whether they are is asked of the last one: memory
/// is seldom new in parts, and asking for all costs as much as copying some.
pub(super) fn bring_in(at: *mut u8, length: usize) {
    let first = (at as usize).next_multiple_of(PAGE);
    let last = (at as usize + length) & !(PAGE - 1);
    let Some(length) = last.checked_sub(first).filter(|&length| length > 0) else { return };
    if is_new((last - PAGE) as *mut u8) {
        // SAFETY: whole pages within the memory that the program gave to be written.
        unsafe { madvise(first as *mut std::ffi::c_void, length, POPULATE_WRITE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inject::system;

    #[test]
    fn new_memory_is_there_and_bad_addresses_do_no_harm() {
        let at = system::map(4 * PAGE, None).unwrap();
        bring_in(at.wrapping_add(10), 3 * PAGE);
        assert!(!is_new(at.wrapping_add(PAGE)) && is_new(at));
        system::unmap(at, 4 * PAGE);
        bring_in(at, 4 * PAGE);
        bring_in(64 as *mut u8, 3);
    }
}
