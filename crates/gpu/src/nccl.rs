//! All-reduce with NCCL, if it is installed, by one process with all its GPUs or by several with one each. It is loaded manually because its file is `libnccl.so.2` or in a Python
//! package, and a general loader looks for neither.

#![expect(unsafe_code, reason = "NCCL is a C library; each block says why the call is sound")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use libloading::Library;

use crate::driver::{DeviceBuffer, Gpu, Stream};
use crate::python_packages::in_python_packages;

type Comm = *mut c_void;
const SUCCESS: c_int = 0;
/// `ncclFloat32` and `ncclSum` of nccl.h.
const FLOAT32: c_int = 7;
const SUM: c_int = 0;

/// `NCCL_UNIQUE_ID_BYTES` of nccl.h.
const ID_BYTES: usize = 128;

type GetVersion = unsafe extern "C" fn(*mut c_int) -> c_int;
type GetUniqueId = unsafe extern "C" fn(*mut UniqueId) -> c_int;
type GetErrorString = unsafe extern "C" fn(c_int) -> *const c_char;
type CommInitAll = unsafe extern "C" fn(*mut Comm, c_int, *const c_int) -> c_int;
type CommInitRank = unsafe extern "C" fn(*mut Comm, c_int, UniqueId, c_int) -> c_int;
type AllReduce =
    unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, c_int, Comm, *mut c_void) -> c_int;

/// What processes need to find each other: `ncclUniqueId`. Rank 0 makes it for all. In hexadecimal as text.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UniqueId([u8; ID_BYTES]);

impl fmt::Display for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for UniqueId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "must be 256 hexadecimal digits";
        let mut id = [0; ID_BYTES];
        if text.len() != 2 * ID_BYTES || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(FORM);
        }
        for (byte, at) in id.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| FORM)?;
        }
        Ok(Self(id))
    }
}

/// NCCL, loaded. Never unloaded: its own threads may still run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NcclLibrary(&'static Library);

impl NcclLibrary {
    /// # Errors
    /// With a message if NCCL is not found.
    pub(crate) fn load() -> Result<Self, String> {
        Ok(Self(Box::leak(Box::new(open()?))))
    }

    /// Such as `NCCL 2.21.5`.
    pub(crate) fn version(self) -> Result<String, String> {
        let mut code: c_int = 0;
        // SAFETY: the signature is that of nccl.h and the pointer is to a live integer.
        let answer = unsafe { self.0.get::<GetVersion>(b"ncclGetVersion").map_err(said)?(&raw mut code) };
        self.check(answer)?;
        Ok(format!("NCCL {}.{}.{}", code / 10_000, code % 10_000 / 100, code % 100))
    }

    /// For rank 0: NCCL then waits for the others in a thread of this process.
    pub(crate) fn unique_id(self) -> Result<UniqueId, String> {
        let mut id = UniqueId([0; ID_BYTES]);
        // SAFETY: the signature is that of nccl.h and the pointer is to as many bytes as it writes.
        let answer = unsafe { self.0.get::<GetUniqueId>(b"ncclGetUniqueId").map_err(said)?(&raw mut id) };
        self.check(answer)?;
        Ok(id)
    }

    /// Joins the ranks of other processes with this thread's current GPU. Waits until all have come.
    pub(crate) fn join(self, id: &UniqueId, rank: u32, size: u32) -> Result<Nccl, String> {
        let version = self.version()?;
        let mut comm: Comm = std::ptr::null_mut();
        // SAFETY: the signature is that of nccl.h, which takes the ID by value; the pointer is to a live handle.
        let answer = unsafe {
            let init = self.0.get::<CommInitRank>(b"ncclCommInitRank").map_err(said)?;
            init(&raw mut comm, size as c_int, *id, rank as c_int)
        };
        self.check(answer)?;
        Ok(Nccl { comms: vec![comm], library: self, version })
    }

    fn check(self, answer: c_int) -> Result<(), String> {
        if answer == SUCCESS {
            return Ok(());
        }
        // SAFETY: the signature is that of nccl.h; it returns a constant text for every code.
        let text = unsafe {
            let words = self.0.get::<GetErrorString>(b"ncclGetErrorString").ok();
            let text = words.map(|words| words(answer)).filter(|text| !text.is_null());
            text.map(|text| CStr::from_ptr(text).to_string_lossy().into_owned())
        };
        let text = text.unwrap_or_else(|| "unknown error".to_owned());
        // Many of its texts say so themselves.
        let hint = if text.contains("NCCL_DEBUG") { "" } else { "; NCCL_DEBUG=WARN shows why" };
        Err(format!("NCCL failed: {text} (code {answer}){hint}"))
    }
}

/// Communicators of this process: one per GPU.
#[derive(Debug)]
pub(crate) struct Nccl {
    comms: Vec<Comm>,
    library: NcclLibrary,
    pub(crate) version: String,
}

impl Nccl {
    /// With all GPUs of this process.
    ///
    /// # Errors
    /// With a message if NCCL is not found or does not start.
    pub(crate) fn start(gpus: u32) -> Result<Self, String> {
        let library = NcclLibrary::load()?;
        let version = library.version()?;
        let devices: Vec<c_int> = (0..gpus as c_int).collect();
        let mut comms: Vec<Comm> = vec![std::ptr::null_mut(); devices.len()];
        // SAFETY: the signature is that of nccl.h; both arrays have `count` elements.
        let answer = unsafe {
            let init = library.0.get::<CommInitAll>(b"ncclCommInitAll").map_err(said)?;
            init(comms.as_mut_ptr(), devices.len() as c_int, devices.as_ptr())
        };
        library.check(answer)?;
        Ok(Self { comms, library, version })
    }

    /// Queues one all-reduce of `count` floats on the stream of every GPU of this process.
    pub(crate) fn all_reduce(&self, ranks: &[Rank<'_>], count: usize) -> Result<(), String> {
        // SAFETY: the signatures are those of nccl.h; each rank's buffers have `count` floats, which the assertion
        // below checks, and belong to the GPU of its communicator.
        unsafe {
            let plain =
                |name: &[u8]| self.library.0.get::<unsafe extern "C" fn() -> c_int>(name).map_err(said);
            let reduce = self.library.0.get::<AllReduce>(b"ncclAllReduce").map_err(said)?;
            let end = plain(b"ncclGroupEnd")?;
            self.library.check(plain(b"ncclGroupStart")?())?;
            let queued = ranks.iter().zip(&self.comms).try_for_each(|(rank, comm)| {
                assert!(4 * count as u64 <= rank.from.bytes().min(rank.to.bytes()), "buffers too short");
                rank.gpu.make_current().map_err(|error| error.to_string())?;
                let (from, to) = (rank.from.at(0) as *const c_void, rank.to.at(0) as *mut c_void);
                self.library.check(reduce(from, to, count, FLOAT32, SUM, *comm, rank.stream.raw()))
            });
            // Always ended: an open group would absorb all later calls.
            let ended = self.library.check(end());
            queued.and(ended)
        }
    }
}

/// The buffers and stream of one GPU in an all-reduce.
#[derive(Debug)]
pub(crate) struct Rank<'a> {
    pub(crate) gpu: &'a Gpu,
    pub(crate) stream: &'a Stream,
    pub(crate) from: &'a DeviceBuffer,
    pub(crate) to: &'a DeviceBuffer,
}

impl Drop for Nccl {
    fn drop(&mut self) {
        // SAFETY: the signature is that of nccl.h; each communicator is destroyed once.
        unsafe {
            if let Ok(destroy) = self.library.0.get::<unsafe extern "C" fn(Comm) -> c_int>(b"ncclCommDestroy")
            {
                for comm in &self.comms {
                    destroy(*comm);
                }
            }
        }
    }
}

fn said(error: libloading::Error) -> String {
    format!("NCCL lacks a function: {error}")
}

fn open() -> Result<Library, String> {
    let mut places: Vec<PathBuf> = std::env::var_os("BUSBOUND_NCCL").map(PathBuf::from).into_iter().collect();
    places.extend(["libnccl.so.2", "libnccl.so"].map(PathBuf::from));
    places.extend(in_python_packages(&["nvidia/nccl/lib/libnccl.so.2"]));
    // SAFETY: loading runs the library's initializers, which are NCCL's own.
    let found = places.iter().find_map(|place| unsafe { Library::new(place) }.ok());
    found.ok_or_else(|| "NCCL (libnccl.so.2) not found; set BUSBOUND_NCCL=/path/to/libnccl.so.2".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_as_text_and_other_text_is_none() {
        let mut id = UniqueId([0; ID_BYTES]);
        id.0.iter_mut().zip(0..).for_each(|(byte, value)| *byte = value);
        let text = id.to_string();
        assert!(text.starts_with("000102") && text.len() == 256, "{text}");
        assert_eq!(text.parse(), Ok(id));
        for wrong in [&text[2..], &text.replace("7f", "+f"), &"ä".repeat(128), ""] {
            assert!(wrong.parse::<UniqueId>().is_err(), "{wrong}");
        }
    }
}
