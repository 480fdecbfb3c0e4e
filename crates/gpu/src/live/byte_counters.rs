//! How many bytes crossed each GPU's bus? A separate thread reads the counters many times per second: a 32-bit
//! counter on a busy link wraps within 70 ms.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use busbound_machine::bench::LinkSeen;
use busbound_machine::live::{CounterWidth, Traffic, TrafficMeter};
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id::{NVML_FI_DEV_PCIE_COUNT_RX_BYTES, NVML_FI_DEV_PCIE_COUNT_TX_BYTES};
use nvml_wrapper::{Device, Nvml};

use crate::telemetry::link_of;

/// If a link does not report its speed, assume the fastest one: PCIe 6 x16.
const FASTEST: LinkSeen = LinkSeen { generation: 6, lanes: 16, max_generation: 6, max_lanes: 16 };
/// The max time between readings.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// Readings per time in which a counter can wrap: one or two may be late.
const READINGS_PER_WRAP: u32 = 4;

/// Both directions of one GPU: to the device (its RX), to the host (its TX).
type Meters = (TrafficMeter, TrafficMeter);

/// The counters of all GPUs.
#[derive(Debug)]
pub(super) struct ByteCounters {
    /// `None` for a GPU without such counters.
    meters: Arc<Mutex<Vec<Option<Meters>>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ByteCounters {
    /// `None` for a GPU that is lost already.
    pub(super) fn start(nvml: &'static Nvml, devices: &[Option<&Device<'static>>]) -> std::io::Result<Self> {
        let began = Instant::now();
        let meters: Vec<Option<Meters>> = devices.iter().map(|device| meters_of((*device)?, began)).collect();
        let gaps = meters.iter().flatten().filter_map(|(rx, _)| rx.longest_gap_ns());
        let pause = pause_between(gaps.min());
        let indices: Vec<Option<u32>> = devices.iter().map(|device| (*device)?.index().ok()).collect();
        let any = meters.iter().any(Option::is_some);
        let (meters, stop) = (Arc::new(Mutex::new(meters)), Arc::new(AtomicBool::new(false)));
        let (theirs, their_stop) = (Arc::clone(&meters), Arc::clone(&stop));
        let work = move || {
            while !their_stop.load(Ordering::Relaxed) {
                for (place, index) in indices.iter().enumerate() {
                    let device = index.and_then(|index| nvml.device_by_index(index).ok());
                    if let Some(device) = device {
                        read_into(&theirs, place, &device, began);
                    }
                }
                std::thread::sleep(pause);
            }
        };
        let thread = any.then(|| std::thread::Builder::new().name("byte counters".to_owned()).spawn(work));
        Ok(Self { meters, stop, thread: thread.transpose()? })
    }

    /// Traffic since the last call, per GPU: to the device and to the host.
    pub(super) fn take(&self) -> Vec<Option<(Traffic, Traffic)>> {
        let mut meters = self.meters.lock().unwrap_or_else(PoisonError::into_inner);
        let both = |(rx, tx): &mut Meters| (rx.take(), tx.take());
        meters.iter_mut().map(|meters| meters.as_mut().map(both)).collect()
    }
}

impl Drop for ByteCounters {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, there is nothing more to do.
            let _ = thread.join();
        }
    }
}

/// The pause between readings, if the fastest counter wraps within this time.
fn pause_between(shortest_wrap_ns: Option<u64>) -> Duration {
    let wrap = shortest_wrap_ns.map_or(LONGEST_PAUSE, Duration::from_nanos);
    (wrap / READINGS_PER_WRAP).min(LONGEST_PAUSE)
}

/// A reading of both counters, at the midpoint of the time it took.
struct Reading {
    at_ns: u64,
    rx: (CounterWidth, u64),
    tx: (CounterWidth, u64),
}

fn meters_of(device: &Device<'_>, began: Instant) -> Option<Meters> {
    let first = reading(device, began)?;
    let peak_gbps = link_of(device).unwrap_or(FASTEST).most_gbps();
    let meter = |(width, value): (CounterWidth, u64)| {
        let mut meter = TrafficMeter::new(width, peak_gbps);
        meter.read(first.at_ns, value);
        meter
    };
    Some((meter(first.rx), meter(first.tx)))
}

/// Reads the driver without holding the lock, so that consumers of the traffic do not wait for it.
fn read_into(meters: &Mutex<Vec<Option<Meters>>>, place: usize, device: &Device<'_>, began: Instant) {
    let has_counters =
        || meters.lock().unwrap_or_else(PoisonError::into_inner).get(place).is_some_and(Option::is_some);
    // A failed reading leaves a gap, which the next one closes or finds too long.
    let Some(reading) = has_counters().then(|| reading(device, began)).flatten() else { return };
    let mut meters = meters.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(Some((rx, tx))) = meters.get_mut(place) {
        rx.read(reading.at_ns, reading.rx.1);
        tx.read(reading.at_ns, reading.tx.1);
    }
}

fn reading(device: &Device<'_>, began: Instant) -> Option<Reading> {
    let ids = [FieldId(NVML_FI_DEV_PCIE_COUNT_RX_BYTES), FieldId(NVML_FI_DEV_PCIE_COUNT_TX_BYTES)];
    let before = began.elapsed();
    let values = device.field_values_for(&ids).ok()?;
    let at_ns = u64::try_from((before + began.elapsed()).as_nanos() / 2).ok()?;
    let mut values = values.into_iter().map(|sample| counted(&sample.ok()?.value.ok()?));
    Some(Reading { at_ns, rx: values.next()??, tx: values.next()?? })
}

/// The type of the driver's answer gives the width of the counter.
fn counted(value: &SampleValue) -> Option<(CounterWidth, u64)> {
    match *value {
        SampleValue::U32(value) => Some((CounterWidth::Bits32, u64::from(value))),
        SampleValue::U64(value) => Some((CounterWidth::Bits64, value)),
        SampleValue::I64(value) => Some((CounterWidth::Bits64, u64::try_from(value).ok()?)),
        SampleValue::F64(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_several_times_before_they_can_wrap() {
        // 32 bits at 63 GB/s.
        assert_eq!(pause_between(Some(68_000_000)), Duration::from_millis(17));
        assert_eq!(pause_between(Some(10_000_000_000)), LONGEST_PAUSE);
        assert!(pause_between(None) <= LONGEST_PAUSE);
    }

    #[test]
    fn the_type_of_an_answer_is_the_width_of_its_counter() {
        assert_eq!(counted(&SampleValue::U32(7)), Some((CounterWidth::Bits32, 7)));
        assert_eq!(counted(&SampleValue::U64(1 << 40)), Some((CounterWidth::Bits64, 1 << 40)));
        assert_eq!((counted(&SampleValue::I64(-1)), counted(&SampleValue::F64(1.0))), (None, None));
    }
}
