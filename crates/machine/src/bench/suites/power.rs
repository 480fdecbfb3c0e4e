//! How far does the clock drop when the GPU is never idle?

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{BenchSuite, Evidence, Phase, SuiteCase, Topic, five_digits};
use crate::bench::figures::{FigureUnit, MeasuredFigure};
use crate::bench::identity::Identity;
use crate::bench::plan::{Limits, Mode};
use crate::bench::statistics::Spread;
use crate::profile::{MachineProfile, PowerFacts};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerTask {
    pub duty_percent: u32,
    pub seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PowerCase {
    pub duty_percent: u32,
    pub kernel_ns: Vec<u64>,
    pub samples: Vec<PowerSample>,
    /// Whether the kernel keeps this chip's tensor cores as busy as a GEMM does. Older samples lack this field; they
    /// come from a Hopper GPU, where it does.
    #[serde(default = "yes")]
    pub like_a_gemm: bool,
}

/// What the driver reported while a kernel ran.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PowerSample {
    pub sm_mhz: u32,
    pub watts: f64,
}

fn yes() -> bool {
    true
}

impl BenchSuite for PowerTask {
    const NAME: &'static str = "power";
    const PHASE: Phase = Phase::Heat;
    const TOPIC: Topic = Topic::Power;

    fn plan(mode: Mode, _limits: &Limits) -> Vec<Self> {
        let seconds = match mode {
            Mode::Quick => 1.5,
            Mode::Full => 6.0,
        };
        [50, 100].map(|duty_percent| Self { duty_percent, seconds }).to_vec()
    }

    fn keep(cases: &[&PowerCase], identity: &Identity, profile: &mut MachineProfile) {
        let at =
            |duty: u32| cases.iter().filter(|case| case.duty_percent == duty).find_map(|case| steady(case));
        profile.power = at(50).zip(at(100)).map(|(half, full)| PowerFacts {
            full_duty_slowdown: five_digits(full.kernel_ns / half.kernel_ns),
            half_duty_mhz: half.mhz,
            full_duty_mhz: full.mhz,
            half_duty_watts: half.watts,
            full_duty_watts: full.watts,
            limit_watts: identity.power_limit_watts,
            like_a_gemm: cases.iter().all(|case| case.like_a_gemm),
        });
    }

    fn figures(evidence: &Evidence<'_>) -> Vec<MeasuredFigure> {
        let Some(power) = &evidence.profile.power else { return Vec::new() };
        let clocks = match (power.half_duty_mhz, power.full_duty_mhz) {
            (Some(half), Some(full)) => format!(" ({half:.0} MHz at half duty, {full:.0} at full)"),
            _ => String::new(),
        };
        let kernel = if power.like_a_gemm { "a matrix kernel's" } else { "an arithmetic kernel's" };
        let least = if power.like_a_gemm {
            ""
        } else {
            "; a GEMM draws more power on this chip and slows down further"
        };
        let what = format!("{kernel} time when the GPU is never idle{clocks}{least}");
        vec![MeasuredFigure::fact("full_duty", what, power.full_duty_slowdown, FigureUnit::Times)]
    }
}

/// The steady state of a duty cycle (medians).
struct Steady {
    kernel_ns: f64,
    mhz: Option<f64>,
    watts: Option<f64>,
}

/// The clock takes a while to drop: the second half is steady.
fn steady(case: &PowerCase) -> Option<Steady> {
    let late = &case.samples[case.samples.len() / 2..];
    let median = |values: &mut dyn Iterator<Item = f64>| Spread::of(values).map(|spread| spread.median);
    Some(Steady {
        kernel_ns: Spread::of_ns(&case.kernel_ns[case.kernel_ns.len() / 2..])?.median,
        mhz: median(&mut late.iter().map(|one| f64::from(one.sm_mhz))),
        watts: median(&mut late.iter().map(|one| one.watts)),
    })
}

impl fmt::Display for PowerTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "power: {}% duty", self.duty_percent)
    }
}

impl SuiteCase for PowerCase {
    fn series(&self) -> Vec<&[u64]> {
        vec![&self.kernel_ns]
    }
}
