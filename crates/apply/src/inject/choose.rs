//! Which copies does this library carry? Those between a GPU and memory that the driver does not know, if they are large
//! enough, on a stream that runs what it is given. All others go to the driver untouched.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::captures;
use super::carry;
use super::driver::{Code, Driver, Memory};
use super::process::Process;
use super::request::{Direction, Pageable, Request};
use super::system::now;
use crate::settings::Mode;
use crate::tally::Kind;

/// Does the copy, here or by `original`, and returns what the driver would.
pub(super) fn copy(request: Request, original: impl Fn() -> Code) -> Code {
    let Some(process) = Process::for_copy_of(request.bytes) else { return original() };
    if captures::is_any() {
        return original();
    }
    let Some((driver, pageable)) =
        Driver::get().and_then(|driver| Some((driver, classified(driver, request)?)))
    else {
        return original();
    };
    let begun = now();
    // A bug here must not end the user's program: the driver then copies everything once more.
    let carried = match process.state.settings.mode {
        Mode::Stage => {
            catch_unwind(AssertUnwindSafe(|| carry::carry(process, driver, pageable))).ok().flatten()
        }
        _ => None,
    };
    let (kind, code) = match (carried, pageable.direction) {
        (Some(code), Direction::In) => (Kind::StagedIn, code),
        (Some(code), Direction::Out) => (Kind::StagedOut, code),
        (None, Direction::In) => (Kind::PassedIn, original()),
        (None, Direction::Out) => (Kind::PassedOut, original()),
    };
    if let Some(tally) = process.state.tally() {
        tally.add(kind, request.bytes, begun, now() - begun);
    }
    code
}

/// `None` if the copy is not one between pageable memory and a GPU.
fn classified(driver: &Driver, request: Request) -> Option<Pageable> {
    let Request { to, from, bytes, stream, waits } = request;
    let with = |direction, host: u64, device| Pageable {
        direction,
        host: host as *mut u8,
        device,
        bytes,
        stream,
        waits,
    };
    let copy = match (driver.memory_at(to), driver.memory_at(from)) {
        (Memory::Device { .. }, Memory::Pageable) => with(Direction::In, from, to),
        (Memory::Pageable, Memory::Device { .. }) => with(Direction::Out, to, from),
        _ => return None,
    };
    // Memory that is pinned in part is the driver's to judge; so is a range that is not all the GPU's.
    let last = (copy.host as u64).checked_add(bytes as u64 - 1)?;
    let is_whole = driver.memory_at(last) == Memory::Pageable && is_on_device(driver, copy.device, bytes);
    is_whole.then_some(copy)
}

/// True if all of it is mapped on a GPU. Allocations that are put together from pieces have several ranges.
fn is_on_device(driver: &Driver, device: u64, bytes: usize) -> bool {
    let Some(end) = device.checked_add(bytes as u64) else { return false };
    let mut at = device;
    while at < end {
        match driver.memory_at(at) {
            Memory::Device { end } if end > at => at = end,
            _ => return false,
        }
    }
    true
}
