//! What do the benchmarks show about this machine? Does each figure match its hardware, and if not, why?

mod patterns;

use busbound_machine::bench::{
    Judgment, MeasuredFigure, Mode, PAGEABLE_H2D, PINNED_D2H, PINNED_H2D, Samples, Skipped,
};
use busbound_machine::{Machine, MachineProfile};
use serde::Serialize;

pub use patterns::{DoubleBuffered, Offloaded, PlanErrors};

use crate::quantity::plural;

pub const BENCH_SCHEMA: &str = "busbound.bench/2";

/// The answer of `busbound bench`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Benchmark {
    pub schema: &'static str,
    /// The answer in a sentence.
    pub statement: String,
    pub figures: Vec<MeasuredFigure>,
    /// Steps that ran as `plan offload` describes them, and what it predicts for them from this profile.
    pub offload: Vec<Offloaded>,
    /// Prediction errors, by kind of memory.
    pub offload_errors: Vec<PlanErrors>,
    pub double_buffer: Vec<DoubleBuffered>,
    pub mode: Mode,
    pub wall_s: f64,
    /// Whether the benchmark was stopped early.
    pub interrupted: bool,
    /// Peak memory use.
    pub device_bytes: u64,
    pub host_bytes: u64,
    pub skipped: Vec<Skipped>,
    /// The profile for `--machine`.
    pub profile: MachineProfile,
}

impl Benchmark {
    /// Whether it includes copies large enough to measure the link, so that the profile is reliable.
    pub fn is_whole(&self) -> bool {
        self.figures.iter().any(|figure| figure.id == PINNED_H2D)
    }
}

/// Compares the measurements with their expected values.
pub fn judge_bench(samples: &Samples) -> Benchmark {
    let profile = samples.profile();
    let figures = samples.figures(&profile);
    let (offload, double_buffer) = if profile.has_copy_curve() {
        let link = Machine::measured(profile.clone()).link_of(Some(&profile.gpu));
        (patterns::offloaded(samples, &link), patterns::double_buffered(samples, &link))
    } else {
        // Without the curve nothing can be predicted.
        (Vec::new(), Vec::new())
    };
    Benchmark {
        schema: BENCH_SCHEMA,
        statement: statement(samples, &profile, &figures),
        offload_errors: PlanErrors::of(&offload),
        figures,
        offload,
        double_buffer,
        mode: samples.mode,
        wall_s: samples.wall_s,
        interrupted: samples.interrupted,
        device_bytes: samples.device_bytes,
        host_bytes: samples.host_bytes,
        skipped: samples.skipped.clone(),
        profile,
    }
}

fn statement(samples: &Samples, profile: &MachineProfile, figures: &[MeasuredFigure]) -> String {
    let (broken, _) = samples.wrong_data();
    if broken > 0 {
        return format!(
            "Data was corrupted in {}: do not trust any result from this machine until the cause is known.",
            plural(broken as u64, "measurement", "measurements")
        );
    }
    let of = |id: &str| figures.iter().find(|figure| figure.id == id);
    let mut text = match (of(PINNED_H2D), of(PINNED_D2H)) {
        (Some(to), Some(from)) => {
            let short = [to, from].iter().any(|figure| figure.judgment == Judgment::Low);
            let share = to.measured.min(from.measured) / profile.peak_gbps;
            format!(
                "{}{}: pinned copies reach {:.1} GB/s H2D and {:.1} GB/s D2H, {:.0}% of {}",
                if short { "Below the expected rate of this GPU's link. " } else { "" },
                profile.gpu,
                to.measured,
                from.measured,
                100.0 * share,
                profile.link,
            )
        }
        _ => format!("{}: the selected suites ran", profile.gpu),
    };
    if let (Some(pinned), Some(pageable)) = (of(PINNED_H2D), of(PAGEABLE_H2D)) {
        text.push_str(&format!(
            "; pageable H2D copies reach {:.1} GB/s, {:.1}x slower",
            pageable.measured,
            pinned.measured / pageable.measured
        ));
    }
    let count = |judgment| figures.iter().filter(|figure| figure.judgment == judgment).count();
    let with_expected = figures.iter().filter(|figure| figure.expected.is_some()).count();
    text.push_str(&match count(Judgment::Low) {
        0 if with_expected == 0 => ". No result has an expected value.".to_owned(),
        0 => ". All results as expected.".to_owned(),
        1 => ". 1 result is below its expected value.".to_owned(),
        n => format!(". {n} results are below their expected values."),
    });
    if samples.interrupted {
        text.push_str(" The benchmark was stopped early.");
    }
    text
}
