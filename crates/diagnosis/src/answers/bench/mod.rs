//! What do the benchmarks say of this machine: is each figure what its hardware should give, and if not, why?

mod patterns;

use busbound_machine::bench::{
    Judgment, MeasuredFigure, Mode, PAGEABLE_H2D, PINNED_D2H, PINNED_H2D, Samples, Skipped,
};
use busbound_machine::{Machine, MachineProfile};
use serde::Serialize;

pub use patterns::{DoubleBuffered, Offloaded, PlanErrors};

pub const BENCH_SCHEMA: &str = "busbound.bench/2";

/// The answer of `busbound bench`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Benchmark {
    pub schema: &'static str,
    /// The answer in a sentence.
    pub statement: String,
    pub figures: Vec<MeasuredFigure>,
    /// Steps that were run as `plan offload` describes them, beside what it predicts from this profile.
    pub offload: Vec<Offloaded>,
    /// How far the predictions were off, by memory.
    pub offload_errors: Vec<PlanErrors>,
    pub double_buffer: Vec<DoubleBuffered>,
    pub mode: Mode,
    pub wall_s: f64,
    /// Stopped before its end.
    pub interrupted: bool,
    /// The most that was held at once.
    pub device_bytes: u64,
    pub host_bytes: u64,
    pub skipped: Vec<Skipped>,
    /// What `--machine` takes.
    pub profile: MachineProfile,
}

impl Benchmark {
    /// Whether it has copies large enough to tell the link by, and so makes a profile to rely on.
    pub fn is_whole(&self) -> bool {
        self.figures.iter().any(|figure| figure.id == PINNED_H2D)
    }
}

/// Judges what was measured.
pub fn judge_bench(samples: &Samples) -> Benchmark {
    let profile = samples.profile();
    let figures = samples.figures(&profile);
    let (offload, double_buffer) = if profile.tells_copies() {
        let link = Machine::measured(profile.clone()).link_of(Some(&profile.gpu));
        (patterns::offloaded(samples, &link), patterns::double_buffered(samples, &link))
    } else {
        // Without the curve there is nothing to predict from.
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
            "Data did not arrive as it was sent in {broken} measurements: trust nothing of this machine before that is explained."
        );
    }
    let of = |id: &str| figures.iter().find(|figure| figure.id == id);
    let mut text = match (of(PINNED_H2D), of(PINNED_D2H)) {
        (Some(to), Some(from)) => {
            let short = [to, from].iter().any(|figure| figure.judgment == Judgment::Short);
            let share = to.measured.min(from.measured) / profile.peak_gbps;
            format!(
                "{}{}: {:.1} GB/s to the device, {:.1} to the host from pinned memory, {:.0} % of {}",
                if short { "Short of what this GPU's link should give. " } else { "" },
                profile.gpu,
                to.measured,
                from.measured,
                100.0 * share,
                profile.link,
            )
        }
        _ => format!("{}: the suites asked for ran", profile.gpu),
    };
    if let (Some(pinned), Some(pageable)) = (of(PINNED_H2D), of(PAGEABLE_H2D)) {
        text.push_str(&format!(
            "; pageable memory gives {:.1}, {:.1} times less",
            pageable.measured,
            pinned.measured / pageable.measured
        ));
    }
    let count = |judgment| figures.iter().filter(|figure| figure.judgment == judgment).count();
    let judged = figures.iter().filter(|figure| figure.expected.is_some()).count();
    text.push_str(&match count(Judgment::Short) {
        0 if judged == 0 => ". Nothing that was measured has a yardstick.".to_owned(),
        0 => ". Nothing is short of what it should be.".to_owned(),
        1 => ". 1 figure is short of what it should be.".to_owned(),
        n => format!(". {n} figures are short of what they should be."),
    });
    if samples.interrupted {
        text.push_str(" Stopped before its end.");
    }
    text
}
