//! On which NUMA node is the host memory of a copy? The kernel says it for pages that are resident (`move_pages` without
//! moving anything), once for each buffer that is seen, on the thread that copies: a moment later the buffer may be gone.
//!
//! Costs are bounded: copies of less than [`SMALLEST`] are not looked at, at most [`MOST_PAGES`] pages are asked about at a time,
//! at most [`MOST_QUESTIONS`] times per second, and no thread waits for another one. On machines with one node, copies are not
//! asked about at all. Where the kernel refuses, it is asked once.

#![expect(unsafe_code, reason = "the kernel is asked about addresses")]

use std::collections::BTreeMap;
use std::ffi::{c_int, c_long, c_ulong, c_void};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::format::SEVERAL_NODES;

/// Smaller copies do not use the bandwidth between nodes.
const SMALLEST: usize = 64 << 10;
/// Pages of a buffer that are asked about, spread over it.
const MOST_PAGES: usize = 16;
const PAGE: usize = 4096;
/// An answer is used for this long: later, other memory may have the same address.
const KNOWN_FOR: Duration = Duration::from_secs(1);
/// Questions per [`KNOWN_FOR`].
const MOST_QUESTIONS: u32 = 256;
/// Buffers whose answers are kept.
const MOST_BUFFERS: usize = 1024;

/// Which argument of a copy call is host memory? The first is the destination, the second the source, the third the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyCall {
    ToDevice,
    ToHost,
    /// The fourth argument says.
    ByKind,
    /// Only the addresses say.
    ByAddress,
    /// Neither.
    WithinDevice,
}

const HOST_TO_DEVICE: u32 = 1;
const DEVICE_TO_HOST: u32 = 2;
const DEFAULT: u32 = 4;

impl CopyCall {
    /// A call by its name without prefix and version. Copies of rows (`Memcpy2D`) have other arguments and are not observed.
    pub(super) fn named(stem: &str, is_runtime: bool) -> Option<Self> {
        Some(match stem {
            "MemcpyHtoD" | "MemcpyHtoDAsync" if !is_runtime => Self::ToDevice,
            "MemcpyDtoH" | "MemcpyDtoHAsync" if !is_runtime => Self::ToHost,
            "MemcpyDtoD" | "MemcpyDtoDAsync" if !is_runtime => Self::WithinDevice,
            "Memcpy" | "MemcpyAsync" if is_runtime => Self::ByKind,
            "Memcpy" | "MemcpyAsync" => Self::ByAddress,
            _ => return None,
        })
    }

    /// The addresses that may be host memory.
    fn candidates(self, argument: impl Fn(usize) -> usize) -> Vec<usize> {
        let (to, from) = (argument(0), argument(1));
        match self {
            Self::ToDevice => vec![from],
            Self::ToHost => vec![to],
            Self::ByAddress => vec![from, to],
            Self::WithinDevice => Vec::new(),
            // An enum of 32 bits.
            Self::ByKind => match argument(3) as u32 {
                HOST_TO_DEVICE => vec![from],
                DEVICE_TO_HOST => vec![to],
                DEFAULT => vec![from, to],
                _ => Vec::new(),
            },
        }
    }
}

/// What the kernel says about a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// All pages that were asked about are on this node, or on several ([`SEVERAL_NODES`]).
    Node(u32),
    /// They are not resident, or not ordinary memory.
    Unknown,
    /// The process may not ask.
    Refused(i32),
}

struct Known {
    end: usize,
    answer: Answer,
    since: Instant,
}

/// What was asked so far.
#[derive(Default)]
struct Buffers {
    /// By their first address.
    known: BTreeMap<usize, Known>,
    /// Since when questions are counted, and how many there were.
    questions: Option<(Instant, u32)>,
}

static BUFFERS: Mutex<Option<Buffers>> = Mutex::new(None);
/// The error with which the kernel refused.
static REFUSED: OnceLock<i32> = OnceLock::new();

impl Buffers {
    fn node(
        &mut self,
        (start, bytes): (usize, usize),
        now: Instant,
        ask: impl FnOnce(usize, usize) -> Answer,
    ) -> Answer {
        let end = start.saturating_add(bytes);
        let is_recent = |since: Instant| now.saturating_duration_since(since) < KNOWN_FOR;
        let before = self.known.range(..=start).next_back();
        if let Some((_, known)) = before.filter(|(_, known)| known.end >= end && is_recent(known.since)) {
            return known.answer;
        }
        let (since, asked) = self.questions.filter(|(since, _)| is_recent(*since)).unwrap_or((now, 0));
        if asked >= MOST_QUESTIONS {
            return Answer::Unknown;
        }
        self.questions = Some((since, asked + 1));
        let answer = ask(start, bytes);
        if self.known.len() >= MOST_BUFFERS {
            self.known.clear();
        }
        self.known.insert(start, Known { end, answer, since: now });
        answer
    }
}

/// The node of the host memory that a call copies from or to, after the call: before it, memory that is written first by this
/// copy has no node.
pub(super) fn node_of(call: CopyCall, argument: impl Fn(usize) -> usize) -> Option<u32> {
    let bytes = argument(2);
    if bytes < SMALLEST || REFUSED.get().is_some() {
        return None;
    }
    let mut buffers = BUFFERS.try_lock().ok()?;
    let buffers = buffers.get_or_insert_default();
    let now = Instant::now();
    let mut nodes = Vec::new();
    for start in call.candidates(argument) {
        match buffers.node((start, bytes), now, ask) {
            Answer::Node(node) => nodes.push(node),
            Answer::Unknown => {}
            Answer::Refused(error) => _ = REFUSED.set(error),
        }
    }
    // With two, both sides are host memory, or managed.
    match nodes[..] {
        [node] => Some(node),
        _ => None,
    }
}

/// The NUMA node of memory of this process; `None` if it is on several, or if the kernel does not say.
pub fn node_of_memory(start: usize, bytes: usize) -> Option<u32> {
    match ask(start, bytes) {
        Answer::Node(node) => Some(node).filter(|node| *node != SEVERAL_NODES),
        Answer::Unknown | Answer::Refused(_) => None,
    }
}

/// Why the kernel does not say where memory is, if it was asked and refused.
pub(super) fn refusal() -> Option<String> {
    REFUSED.get().map(|error| std::io::Error::from_raw_os_error(*error).to_string())
}

#[cfg(target_arch = "x86_64")]
const MOVE_PAGES: Option<c_long> = Some(279);
#[cfg(target_arch = "aarch64")]
const MOVE_PAGES: Option<c_long> = Some(239);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MOVE_PAGES: Option<c_long> = None;

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

const EPERM: i32 = 1;
const EACCES: i32 = 13;
const ENOSYS: i32 = 38;

/// Asks the kernel about a few pages of a buffer.
fn ask(start: usize, bytes: usize) -> Answer {
    let Some(number) = MOVE_PAGES else { return Answer::Refused(ENOSYS) };
    let count = bytes.div_ceil(PAGE).clamp(1, MOST_PAGES);
    let mut pages = [std::ptr::null::<c_void>(); MOST_PAGES];
    for (index, page) in pages.iter_mut().enumerate().take(count) {
        let at = start.saturating_add(bytes.saturating_sub(1) / count * index);
        *page = (at / PAGE * PAGE) as *const c_void;
    }
    let mut status: [c_int; MOST_PAGES] = [-1; MOST_PAGES];
    // SAFETY: process 0 is this one; two arrays of `count`; without target nodes nothing is moved, and the addresses are
    // only looked up.
    let result = unsafe {
        let nowhere = std::ptr::null::<c_int>();
        syscall(
            number,
            0 as c_long,
            count as c_ulong,
            pages.as_ptr(),
            nowhere,
            status.as_mut_ptr(),
            0 as c_long,
        )
    };
    if result < 0 {
        let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        return if [EPERM, EACCES, ENOSYS].contains(&error) {
            Answer::Refused(error)
        } else {
            Answer::Unknown
        };
    }
    summary(&status[..count])
}

/// At least half of the pages must have a node: a negative number is an error for one page.
fn summary(status: &[c_int]) -> Answer {
    let nodes: Vec<u32> = status.iter().filter_map(|node| u32::try_from(*node).ok()).collect();
    match nodes.first() {
        Some(first) if 2 * nodes.len() >= status.len() => {
            Answer::Node(if nodes.iter().all(|node| node == first) { *first } else { SEVERAL_NODES })
        }
        _ => Answer::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_side_of_a_copy_is_known_by_its_call() {
        let named = CopyCall::named;
        assert_eq!(named("MemcpyHtoDAsync", false), Some(CopyCall::ToDevice));
        assert_eq!(named("MemcpyDtoH", false), Some(CopyCall::ToHost));
        assert_eq!(named("MemcpyAsync", true), Some(CopyCall::ByKind));
        assert_eq!(named("MemcpyAsync", false), Some(CopyCall::ByAddress));
        assert_eq!((named("Memcpy2DAsync", true), named("MemcpyPeerAsync", true)), (None, None));
        let sides = |call: CopyCall, kind: usize| call.candidates(|index| [10, 20, 1 << 20, kind][index]);
        assert_eq!(sides(CopyCall::ToDevice, 0), [20]);
        assert_eq!(sides(CopyCall::ToHost, 0), [10]);
        // The upper half is not part of the number.
        assert_eq!(sides(CopyCall::ByKind, (7 << 32) | 1), [20]);
        assert_eq!(sides(CopyCall::ByKind, 2), [10]);
        assert_eq!(sides(CopyCall::ByKind, 4), [20, 10]);
        assert!(sides(CopyCall::ByKind, 3).is_empty(), "within the GPU");
    }

    #[test]
    fn a_buffer_is_asked_about_once_and_again_when_it_may_be_another() {
        let (mut buffers, start) = (Buffers::default(), Instant::now());
        let mut asked = Vec::new();
        let mut node = |at: usize, bytes: usize, after: Duration, answer: u32| {
            buffers.node((at, bytes), start + after, |at, bytes| {
                asked.push((at, bytes));
                Answer::Node(answer)
            })
        };
        let soon = Duration::from_millis(1);
        assert_eq!(node(1000, 100, Duration::ZERO, 0), Answer::Node(0));
        // Within what is known, and beyond its end.
        assert_eq!(node(1020, 80, soon, 1), Answer::Node(0));
        assert_eq!(node(1020, 81, soon, 1), Answer::Node(1));
        assert_eq!(node(1000, 100, KNOWN_FOR, 1), Answer::Node(1));
        assert_eq!(asked, [(1000, 100), (1020, 81), (1000, 100)]);
    }

    #[test]
    fn questions_and_memory_are_bounded() {
        let (mut buffers, start) = (Buffers::default(), Instant::now());
        let mut asked = 0;
        for second in 0..8 {
            for buffer in 0..1000 {
                let now = start + second * KNOWN_FOR;
                let one = (buffer * 100 + second as usize * 1_000_000, 100);
                let answer = buffers.node(one, now, |_, _| {
                    asked += 1;
                    Answer::Node(0)
                });
                assert_eq!(answer == Answer::Unknown, buffer >= MOST_QUESTIONS as usize);
            }
        }
        assert_eq!(asked, 8 * MOST_QUESTIONS);
        assert!(buffers.known.len() <= MOST_BUFFERS);
    }

    #[test]
    fn pages_on_several_nodes_are_not_pages_without_one() {
        assert_eq!(summary(&[1, 1, 1, 1]), Answer::Node(1));
        assert_eq!(summary(&[1, -2, 1, -14]), Answer::Node(1));
        assert_eq!(summary(&[1, 0, 1, 0]), Answer::Node(SEVERAL_NODES));
        assert_eq!(summary(&[1, -2, -2, -2]), Answer::Unknown);
        assert_eq!(summary(&[-14; 4]), Answer::Unknown);
    }

    /// The real kernel: memory that was written has a node that exists, an address without memory has none.
    #[test]
    fn the_kernel_knows_the_node_of_written_memory() {
        let buffer = vec![7u8; 1 << 20];
        let answer = ask(buffer.as_ptr() as usize, buffer.len());
        if let Answer::Refused(error) = answer {
            assert!([EPERM, EACCES, ENOSYS].contains(&error));
            return;
        }
        let Answer::Node(node) = answer else { panic!("{answer:?}") };
        let exists = std::path::Path::new("/sys/devices/system/node").join(format!("node{node}")).exists();
        assert!(exists || node == SEVERAL_NODES || node == 0, "{node}");
        assert_eq!(ask(4096, 1 << 20), Answer::Unknown);
    }
}
