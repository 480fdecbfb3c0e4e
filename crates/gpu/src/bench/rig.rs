//! What every suite measures with: the GPU, its kernels, two streams, and a clock that starts with them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use busbound_machine::bench::{Identity, LinkSeen, Memory, Mode, Patience};

use super::buffers::Buffers;
use super::seat::Seat;
use crate::driver::{CudaError, DeviceBuffer, Event, Gpu, Hold, HostBuffer, Kernels, Result, Stream};
use crate::nccl::Nccl;
use crate::telemetry::Telemetry;

pub(super) struct Rig<'a> {
    // In drop order: buffers on the GPU before the GPU.
    pub(super) buffers: Buffers,
    /// Why a part of the current task has no times.
    pub(super) notes: Vec<String>,
    pub(super) nccl: Option<std::result::Result<Nccl, String>>,
    pub(super) hold: Hold,
    pub(super) kernels: Kernels,
    pub(super) main: Stream,
    pub(super) side: Stream,
    start: Event,
    end: Event,
    go: Event,
    pub(super) telemetry: Option<Telemetry>,
    pub(super) gpu: Gpu,
    pub(super) gpus: u32,
    pub(super) mode: Mode,
    /// The largest copy allowed.
    pub(super) largest: u64,
    /// This program, to start it a second time.
    pub(super) program: Option<PathBuf>,
    seat: Seat,
    stop: &'a AtomicBool,
}

/// One repetition lasts about this long, so that the clock resolution does not matter.
const REPETITION_NS: u64 = 2_000_000;
/// Enough for short operations, and well below the queue limit.
const MAX_PER_REPETITION: u64 = 64;
/// The max work queued at the same time: the queue is finite, and a held stream does not drain.
pub(super) const MAX_QUEUED: u32 = 256;

impl<'a> Rig<'a> {
    pub(super) fn open(ordinal: u32, gpus: u32, mode: Mode, stop: &'a AtomicBool) -> Result<Self> {
        let gpu = Gpu::open(ordinal)?;
        let address = gpu.pci_address()?;
        // Before any allocation: memory is placed near the thread that first touches it.
        let seat = Seat::near(&address);
        Ok(Self {
            buffers: Buffers::default(),
            notes: Vec::new(),
            nccl: None,
            hold: Hold::new()?,
            kernels: Kernels::load(&gpu)?,
            main: Stream::new()?,
            side: Stream::new()?,
            start: Event::new()?,
            end: Event::new()?,
            go: Event::new()?,
            telemetry: Telemetry::of(&address),
            gpu,
            gpus,
            mode,
            largest: 1 << 20,
            program: None,
            seat,
            stop,
        })
    }

    pub(super) fn identity(&self) -> Result<Identity> {
        self.seat.identity(&self.gpu, self.gpus, self.telemetry.as_ref())
    }

    /// An idle link switches to a lower speed, so it is read while copies run.
    pub(super) fn link_under_load(&mut self) -> Result<Option<LinkSeen>> {
        let bytes = self.largest.min(64 << 20);
        let host = HostBuffer::new(bytes, Memory::Pinned)?;
        let device = DeviceBuffer::new(bytes)?;
        for _ in 0..32 {
            self.main.to_device(&device, 0, &host, 0, bytes)?;
        }
        let link = self.telemetry.as_ref().and_then(Telemetry::link);
        self.main.synchronize()?;
        Ok(link)
    }

    pub(super) fn check_stop(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) { Err(CudaError::Stopped) } else { Ok(()) }
    }

    /// Repeats after a warm-up, until the times are stable enough.
    pub(super) fn repeat(
        &self,
        patience: Patience,
        mut once: impl FnMut() -> Result<u64>,
    ) -> Result<Vec<u64>> {
        self.check_stop()?;
        once()?;
        let mut times = Vec::new();
        while !patience.is_over(&times) {
            self.check_stop()?;
            times.push(once()?);
        }
        Ok(times)
    }

    /// GPU time of what is queued on the main stream, without the cost of queueing it.
    pub(super) fn held(&self, queue: impl FnOnce() -> Result<()>) -> Result<u64> {
        self.hold.behind(&self.kernels, &self.main, || {
            self.main.record(&self.start)?;
            queue()?;
            self.main.record(&self.end)
        })?;
        self.main.synchronize()?;
        self.end.ns_since(&self.start)
    }

    /// The same if the host takes part (pageable memory): with a held stream it would never finish.
    pub(super) fn unheld(&self, queue: impl FnOnce() -> Result<()>) -> Result<u64> {
        self.main.synchronize()?;
        self.main.record(&self.start)?;
        queue()?;
        self.main.record(&self.end)?;
        self.main.synchronize()?;
        self.end.ns_since(&self.start)
    }

    /// Both streams start at the same time; returns the time of the one that `timed` selects.
    pub(super) fn on_both_streams(&self, timed: Timed, queue: impl FnOnce() -> Result<()>) -> Result<u64> {
        self.hold.behind(&self.kernels, &self.main, || {
            self.main.record(&self.go)?;
            self.side.wait(&self.go)?;
            self.stream(timed).record(&self.start)?;
            queue()?;
            if timed == Timed::Both {
                // The main stream ends after the other one.
                self.side.record(&self.go)?;
                self.main.wait(&self.go)?;
            }
            self.stream(timed).record(&self.end)
        })?;
        self.main.synchronize()?;
        self.side.synchronize()?;
        self.end.ns_since(&self.start)
    }

    fn stream(&self, timed: Timed) -> &Stream {
        if timed == Timed::Side { &self.side } else { &self.main }
    }
}

/// How many operations of this duration make up a repetition.
pub(super) fn per_repetition(one_ns: u64, least: u32) -> u32 {
    REPETITION_NS.div_ceil(one_ns.max(1)).clamp(u64::from(least), MAX_PER_REPETITION) as u32
}

/// Which stream is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timed {
    Main,
    Side,
    Both,
}

/// Host time of a call.
pub(super) fn host_ns(call: impl FnOnce() -> Result<()>) -> Result<u64> {
    let began = Instant::now();
    call()?;
    Ok((began.elapsed().as_nanos() as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_lasts_two_milliseconds_within_bounds() {
        assert_eq!(per_repetition(500_000, 2), 4);
        assert_eq!(per_repetition(300_000, 2), 7);
        // Long work is still repeated, and short work does not fill the queue.
        assert_eq!((per_repetition(50_000_000, 2), per_repetition(50_000_000, 4)), (2, 4));
        assert_eq!((per_repetition(10, 2), per_repetition(0, 2)), (64, 64));
        assert!(MAX_PER_REPETITION < u64::from(MAX_QUEUED));
    }
}
