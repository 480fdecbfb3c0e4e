//! What are figures "per": a step, a detected iteration or the whole trace?

words! {
    /// What a "per step" figure is per.
    pub enum Unit: "unit" {
        /// Marked by the program or selected by the user.
        Step = "step",
        /// Detected as a repeating pattern of launches, if no steps are marked. A step may contain several.
        Iteration = "iteration",
        /// The whole trace, if it has no steps.
        Trace = "trace",
    }
}

impl Unit {
    /// `a step`, `an iteration`, `the trace`.
    pub fn article(self) -> &'static str {
        match self {
            Self::Iteration => "an",
            Self::Step => "a",
            Self::Trace => "the",
        }
    }

    /// After a figure: `/step`; nothing if figures are for the whole trace.
    pub fn per(self) -> &'static str {
        match self {
            Self::Step => "/step",
            Self::Iteration => "/iteration",
            Self::Trace => "",
        }
    }
}
