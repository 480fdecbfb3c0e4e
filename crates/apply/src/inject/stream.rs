//! Copying past the caches, as fast as one thread can.

use std::arch::x86_64::{
    __m128i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm_sfence, _mm_stream_si128, _mm512_loadu_si512,
    _mm512_stream_si512,
};

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
    // SAFETY: both ranges have this length; lines of the target are aligned.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        // One thread copies up to a fifth faster so; many together fill the memory either way (an H200's host).
        if is_x86_feature_detected!("avx512f") {
            wide_lines(from.add(head), to.add(head), lines);
        } else {
            narrow_lines(from.add(head), to.add(head), lines);
        }
        // Others see the stores before they see that the piece is done.
        _mm_sfence();
        std::ptr::copy_nonoverlapping(from.add(tail), to.add(tail), length - tail);
    }
}

/// A line at once.
///
/// # Safety
/// Both ranges have this many lines, those of the target are aligned, and the processor knows AVX-512.
#[target_feature(enable = "avx512f")]
unsafe fn wide_lines(from: *const u8, to: *mut u8, lines: usize) {
    for line in 0..lines {
        // SAFETY: as the caller says; a prefetch may be outside.
        unsafe {
            let (from, to) = (from.add(line * LINE), to.add(line * LINE));
            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD).cast());
            _mm512_stream_si512(to.cast(), _mm512_loadu_si512(from.cast()));
        }
    }
}

/// A quarter of a line at once, on every processor.
///
/// # Safety
/// Both ranges have this many lines, and those of the target are aligned.
unsafe fn narrow_lines(from: *const u8, to: *mut u8, lines: usize) {
    for line in 0..lines {
        // SAFETY: as the caller says; a prefetch may be outside.
        unsafe {
            let (from, to) = (from.add(line * LINE), to.add(line * LINE));
            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD).cast());
            let (from, to) = (from.cast::<__m128i>(), to.cast::<__m128i>());
            let parts = [0, 1, 2, 3].map(|part| _mm_loadu_si128(from.add(part)));
            for (part, value) in parts.into_iter().enumerate() {
                _mm_stream_si128(to.add(part), value);
            }
        }
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

    /// Whichever this processor uses.
    #[test]
    fn lines_are_copied_alike_in_both_ways() {
        #[repr(align(64))]
        struct Lines([u8; 4096]);
        let from: Vec<u8> = (0..5000).map(|at| (at % 253) as u8).collect();
        let mut narrow = Lines([0; 4096]);
        // SAFETY: both have the lines, and the target is aligned.
        unsafe { narrow_lines(from.as_ptr().wrapping_add(5), narrow.0.as_mut_ptr(), 64) };
        assert_eq!(narrow.0[..], from[5..5 + 4096]);
        if is_x86_feature_detected!("avx512f") {
            let mut wide = Lines([0; 4096]);
            // SAFETY: as above; the processor has just been asked.
            unsafe { wide_lines(from.as_ptr().wrapping_add(5), wide.0.as_mut_ptr(), 64) };
            assert_eq!(wide.0[..], narrow.0[..]);
        }
    }
}
