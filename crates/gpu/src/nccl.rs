//! All-reduce with NCCL, if it is installed. It is loaded manually because its file is `libnccl.so.2` or in a Python
//! package, and a general loader looks for neither.

#![expect(unsafe_code, reason = "NCCL is a C library; each block says why the call is sound")]

use std::ffi::{c_int, c_void};
use std::path::PathBuf;

use libloading::Library;

use crate::driver::{DeviceBuffer, Gpu, Stream};
use crate::python_packages::in_python_packages;

type Comm = *mut c_void;
const SUCCESS: c_int = 0;
/// `ncclFloat32` and `ncclSum` of nccl.h.
const FLOAT32: c_int = 7;
const SUM: c_int = 0;

type CommInitAll = unsafe extern "C" fn(*mut Comm, c_int, *const c_int) -> c_int;
type AllReduce =
    unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, c_int, Comm, *mut c_void) -> c_int;

/// One communicator per GPU of this process.
#[derive(Debug)]
pub(crate) struct Nccl {
    comms: Vec<Comm>,
    /// Never unloaded: NCCL's own threads may still run.
    library: &'static Library,
    pub(crate) version: String,
}

impl Nccl {
    /// # Errors
    /// With a message if NCCL is not found or does not start.
    pub(crate) fn start(gpus: u32) -> Result<Self, String> {
        let library: &'static Library = Box::leak(Box::new(open()?));
        let mut code: c_int = 0;
        // SAFETY: the signature is that of nccl.h and the pointer is to a live integer.
        let answer = unsafe {
            let version =
                library.get::<unsafe extern "C" fn(*mut c_int) -> c_int>(b"ncclGetVersion").map_err(said)?;
            version(&raw mut code)
        };
        check(answer)?;
        let devices: Vec<c_int> = (0..gpus as c_int).collect();
        let mut comms: Vec<Comm> = vec![std::ptr::null_mut(); devices.len()];
        // SAFETY: the signature is that of nccl.h; both arrays have `count` elements.
        let answer = unsafe {
            let init = library.get::<CommInitAll>(b"ncclCommInitAll").map_err(said)?;
            init(comms.as_mut_ptr(), devices.len() as c_int, devices.as_ptr())
        };
        check(answer)?;
        let version = format!("NCCL {}.{}.{}", code / 10_000, code % 10_000 / 100, code % 100);
        Ok(Self { comms, library, version })
    }

    /// Queues one all-reduce of `count` floats on every GPU's stream.
    pub(crate) fn all_reduce(&self, ranks: &[Rank<'_>], count: usize) -> Result<(), String> {
        // SAFETY: the signatures are those of nccl.h; each rank's buffers have `count` floats, which the assertion
        // below checks, and belong to the GPU of its communicator.
        unsafe {
            let plain = |name: &[u8]| self.library.get::<unsafe extern "C" fn() -> c_int>(name).map_err(said);
            let reduce = self.library.get::<AllReduce>(b"ncclAllReduce").map_err(said)?;
            let end = plain(b"ncclGroupEnd")?;
            check(plain(b"ncclGroupStart")?())?;
            let queued = ranks.iter().zip(&self.comms).try_for_each(|(rank, comm)| {
                assert!(4 * count as u64 <= rank.from.bytes().min(rank.to.bytes()), "buffers too short");
                rank.gpu.make_current().map_err(|error| error.to_string())?;
                let (from, to) = (rank.from.at(0) as *const c_void, rank.to.at(0) as *mut c_void);
                check(reduce(from, to, count, FLOAT32, SUM, *comm, rank.stream.raw()))
            });
            // Always ended: an open group would absorb all later calls.
            let ended = check(end());
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
            if let Ok(destroy) = self.library.get::<unsafe extern "C" fn(Comm) -> c_int>(b"ncclCommDestroy") {
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

fn check(answer: c_int) -> Result<(), String> {
    if answer == SUCCESS { Ok(()) } else { Err(format!("NCCL failed with code {answer}")) }
}

fn open() -> Result<Library, String> {
    let mut places: Vec<PathBuf> = std::env::var_os("BUSBOUND_NCCL").map(PathBuf::from).into_iter().collect();
    places.extend(["libnccl.so.2", "libnccl.so"].map(PathBuf::from));
    places.extend(in_python_packages(&["nvidia/nccl/lib/libnccl.so.2"]));
    // SAFETY: loading runs the library's initializers, which are NCCL's own.
    let found = places.iter().find_map(|place| unsafe { Library::new(place) }.ok());
    found.ok_or_else(|| "NCCL (libnccl.so.2) not found; set BUSBOUND_NCCL=/path/to/libnccl.so.2".to_owned())
}
