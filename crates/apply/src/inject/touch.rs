//! New memory is slow to write: every page is a fault. The threads bring their pages in, each its own part, before they
//! write to them.

use std::ffi::c_void;

use super::system::{MADV_HUGEPAGE, PAGE, madvise, mincore};

/// `MADV_POPULATE_WRITE`, in Linux 5.14 and newer; older ones refuse it, and writing does the same more slowly.
const POPULATE_WRITE: i32 = 23;
const HUGE: usize = 2 << 20;

/// True if memory that is about to be written is new. Asked of its last whole page: memory is seldom new in parts, an allocator
/// writes to the first page, and asking for all costs as much as copying some.
pub(super) fn is_new(at: *mut u8, length: usize) -> bool {
    let mut is_there = 1u8;
    let Some((first, length)) = whole(PAGE, at, length) else { return false };
    let last = (first + length - PAGE) as *mut c_void;
    // SAFETY: one byte for one page, as the call wants; any address is allowed.
    let asked = unsafe { mincore(last, PAGE, &raw mut is_there) };
    asked == 0 && is_there & 1 == 0
}

/// Asks for huge pages in new memory that is about to be written as a whole: one fault instead of 512, and no more memory
/// than without. A wish; where the system has none, nothing changes.
pub(super) fn prefer_huge(at: *mut u8, length: usize) {
    if let Some((first, length)) = whole(HUGE, at, length) {
        // SAFETY: whole pages within the memory that the program gave to be written; their content stays.
        unsafe { madvise(first as *mut c_void, length, MADV_HUGEPAGE) };
    }
}

/// Brings in the pages of memory that is about to be written, if they are new.
pub(super) fn bring_in(at: *mut u8, length: usize) {
    if let Some((first, whole)) = whole(PAGE, at, length)
        && is_new(at, length)
    {
        // SAFETY: whole pages within the memory that the program gave to be written.
        unsafe { madvise(first as *mut c_void, whole, POPULATE_WRITE) };
    }
}

/// The pages of this size that are completely inside: where they begin, and their length.
fn whole(page: usize, at: *mut u8, length: usize) -> Option<(usize, usize)> {
    let first = (at as usize).checked_next_multiple_of(page)?;
    let last = (at as usize).checked_add(length)? & !(page - 1);
    last.checked_sub(first).filter(|&length| length > 0).map(|length| (first, length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inject::system;

    #[test]
    fn new_memory_is_there_and_bad_addresses_do_no_harm() {
        let at = system::map(4 * PAGE, None).unwrap();
        bring_in(at.wrapping_add(10), 3 * PAGE);
        assert!(!is_new(at.wrapping_add(PAGE), PAGE) && is_new(at, PAGE));
        system::unmap(at, 4 * PAGE);
        bring_in(at, 4 * PAGE);
        bring_in(64 as *mut u8, 3);
        bring_in(usize::MAX as *mut u8, 2 * PAGE);
        prefer_huge(at, 4 * PAGE);
    }

    /// An allocator writes its notes before what it gives out.
    #[test]
    fn memory_is_new_although_its_first_page_was_written() {
        let at = system::map(4 * HUGE, None).unwrap();
        // SAFETY: the memory was just mapped.
        unsafe { at.write(1) };
        assert!(is_new(at.wrapping_add(16), 4 * HUGE - 16));
        prefer_huge(at.wrapping_add(16), 4 * HUGE - 16);
        // SAFETY: as above.
        assert_eq!(unsafe { (at.read(), at.add(3 * HUGE).read()) }, (1, 0));
        system::unmap(at, 4 * HUGE);
    }
}
