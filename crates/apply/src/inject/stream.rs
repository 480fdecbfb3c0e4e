//! Copying past the caches, as fast as one thread can.

use std::arch::x86_64::{__m128i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm_sfence, _mm_stream_si128};

/// What the processor writes to memory at once.
const LINE: usize = 64;
/// How far ahead a line is fetched.
const AHEAD: usize = 1024;

/// Copies without fetching the target into the caches.
///
/// # Safety
/// As [`std::ptr::copy_nonoverlapping`].
pub(super) unsafe fn stream(from: *const u8, to: *mut u8, length: usize) {
    let head = to.align_offset(LINE).min(length);
    let lines = (length - head) / LINE;
    let tail = head + lines * LINE;
    // SAFETY: all addresses are within the two ranges (a prefetch may be outside); lines of the target are aligned.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        for line in 0..lines {
            let (from, to) = (from.add(head + line * LINE), to.add(head + line * LINE));
            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD).cast());
            let (from, to) = (from.cast::<__m128i>(), to.cast::<__m128i>());
            let parts = [0, 1, 2, 3].map(|part| _mm_loadu_si128(from.add(part)));
            for (part, value) in parts.into_iter().enumerate() {
                _mm_stream_si128(to.add(part), value);
            }
        }
        // Others see the stores before they see that the piece is done.
        _mm_sfence();
        std::ptr::copy_nonoverlapping(from.add(tail), to.add(tail), length - tail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streaming_copies_every_byte_at_every_alignment() {
        let from: Vec<u8> = (0..5000).map(|at| (at % 255) as u8).collect();
        for (shift, length) in [(0, 0), (0, 5000), (1, 1), (3, 63), (7, 64), (9, 4000), (63, 129)] {
            let mut to = vec![0xff; 5000];
            // SAFETY: both have the length from the shift on.
            unsafe {
                stream(from.as_ptr().wrapping_add(shift), to.as_mut_ptr().wrapping_add(shift / 2), length)
            };
            assert_eq!(to[shift / 2..shift / 2 + length], from[shift..shift + length]);
            assert!(to[..shift / 2].iter().chain(&to[shift / 2 + length..]).all(|&byte| byte == 0xff));
        }
    }
}
