//! What are figures "per": a step, an iteration that was detected, or the whole trace?

words! {
    /// What a figure given per step is for.
    pub enum Unit: "unit" {
        /// Marked by the program, or named by the user.
        Step = "step",
        /// What repeats in the launches, where no steps are marked. A step may hold several.
        Iteration = "round",
        /// All of the trace, where there are no steps.
        Trace = "trace",
    }
}
