//! How far does the clock drop when the GPU is always busy?

use std::thread::sleep;
use std::time::{Duration, Instant};

use busbound_machine::bench::{PowerCase, PowerSample, PowerTask};

use super::rig::Rig;
use crate::driver::{DeviceBuffer, Event, Result, TENSOR_BYTES};
use crate::telemetry::Telemetry;

/// Long compared to a launch, short compared to the seconds over which power is averaged.
const KERNEL_NS: f64 = 5e6;
const PROBE_TURNS: u32 = 2_000;
/// Kernels that are queued back to back at full duty.
const KERNELS_IN_A_ROW: usize = 10;

pub(super) fn measure(rig: &mut Rig<'_>, task: PowerTask) -> Result<PowerCase> {
    let PowerTask { duty_percent, seconds } = task;
    rig.buffers.clear();
    let random = DeviceBuffer::new(TENSOR_BYTES)?;
    rig.kernels.fill(&rig.main, &random, TENSOR_BYTES, 1)?;
    let seen = DeviceBuffer::new(8)?;
    let launch = |turns: u32| rig.kernels.tensor(&rig.main, &random, turns, seen.at(0));
    rig.held(|| launch(PROBE_TURNS))?;
    let probed = rig.held(|| launch(PROBE_TURNS))? as f64;
    let turns = turns_for(probed);
    let marks: Vec<Event> = (0..=KERNELS_IN_A_ROW).map(|_| Event::new()).collect::<Result<_>>()?;
    let mut kernel_ns = Vec::new();
    let mut samples: Vec<PowerSample> = Vec::new();
    let began = Instant::now();
    while began.elapsed().as_secs_f64() < seconds {
        rig.check_stop()?;
        let row = if duty_percent == 100 { KERNELS_IN_A_ROW } else { 1 };
        rig.main.record(&marks[0])?;
        for mark in &marks[1..=row] {
            launch(turns)?;
            rig.main.record(mark)?;
        }
        samples.extend(rig.telemetry.as_ref().and_then(Telemetry::power));
        rig.main.synchronize()?;
        for pair in marks[..=row].windows(2) {
            kernel_ns.push(pair[1].ns_since(&pair[0])?);
        }
        if let Some(last) = kernel_ns.last().filter(|_| duty_percent < 100) {
            sleep(rest_after(*last, duty_percent));
        }
    }
    Ok(PowerCase { duty_percent, kernel_ns, samples, like_a_gemm: rig.kernels.are_like_a_gemm() })
}

/// Loop iterations of a kernel that lasts [`KERNEL_NS`], from the time of the probe.
fn turns_for(probed_ns: f64) -> u32 {
    (f64::from(PROBE_TURNS) * KERNEL_NS / probed_ns).clamp(1.0, 1e9) as u32
}

/// How long the GPU is idle after a kernel of this duration.
fn rest_after(kernel_ns: u64, duty_percent: u32) -> Duration {
    let rest = kernel_ns as f64 * (100.0 / f64::from(duty_percent) - 1.0);
    Duration::from_nanos(rest as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_duty_idles_as_long_as_it_works() {
        assert_eq!(rest_after(5_000_000, 50), Duration::from_millis(5));
        assert_eq!(rest_after(5_000_000, 25), Duration::from_millis(15));
        assert_eq!(rest_after(5_000_000, 100), Duration::ZERO);
    }

    #[test]
    fn a_kernel_has_the_intended_length() {
        // 2000 iterations in 100 µs: 5 ms take 50 times as many.
        assert_eq!(turns_for(100_000.0), 100_000);
        assert_eq!(turns_for(1e12), 1);
    }
}
