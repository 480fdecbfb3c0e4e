//! What is a share a share of? `of each 274 ms step`.

use super::facts::Facts;
use crate::quantity::milliseconds;

/// From this difference between the mean and the median on, as a share, no step is called "each".
const UNEVEN: f64 = 0.15;

impl Facts<'_> {
    /// Like [`of_each`](Self::of_each), without the profiler where that is known.
    pub(crate) fn of_each_own(&self) -> String {
        match self.unprofiled() {
            Some(own) if self.are_uneven() => {
                format!("of {} per {} on average", milliseconds(own.mid), self.unit())
            }
            Some(own) => format!("of {} {} {}", self.each(), milliseconds(own.mid), self.unit()),
            None => self.of_each(),
        }
    }

    /// Like [`of_each`](Self::of_each), and says that the profiler's cost is included where that matters.
    pub(crate) fn of_each_recorded(&self) -> String {
        match self.unprofiled() {
            Some(_) => {
                let (span, unit) = (milliseconds(self.step_ms()), self.unit());
                match self.has_one_step() {
                    _ if self.are_uneven() => {
                        format!("of {span} per recorded {unit} on average{}", self.median())
                    }
                    true => format!("of {} {span} {unit} as recorded", self.each()),
                    false => format!("of {} recorded {span} {unit}", self.each()),
                }
            }
            None => self.of_each(),
        }
    }

    /// `of each 274 ms step`, or `of the 12.9 s trace`. Says so if the GPU work and the steps differ in length.
    pub(crate) fn of_each(&self) -> String {
        let (span, unit) = (milliseconds(self.step_ms()), self.unit());
        match self.window.times() {
            None => format!("of the {span} trace"),
            Some(_) if self.are_uneven() => format!("of {span} per {unit} on average{}", self.median()),
            Some(_) => format!("of {} {span} {unit}", self.each()),
        }
    }

    /// Most steps are much shorter or longer than the mean.
    fn are_uneven(&self) -> bool {
        self.window.times().is_some_and(|steps| (steps.p50_ms / self.step_ms() - 1.0).abs() > UNEVEN)
    }

    fn median(&self) -> String {
        let times = self.window.times();
        times.map_or_else(String::new, |steps| format!(" (median {})", milliseconds(steps.p50_ms)))
    }

    /// One step is not every step.
    fn each(&self) -> &'static str {
        match self.window.times() {
            None => "the",
            Some(_) if self.has_one_step() => "the one analyzed",
            Some(_) => "each",
        }
    }

    fn has_one_step(&self) -> bool {
        self.window.times().is_some_and(|steps| steps.count == 1)
    }
}
