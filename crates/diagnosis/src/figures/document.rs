//! What does the documentation page of the catalog say?

use std::fmt::Write;

use crate::figures::{CopyFigure, FigureId, Phase};
use crate::unit::Unit;

/// docs/figures.md.
pub fn document() -> String {
    let mut text = String::from(
        "# Figures\n\n\
         Every figure that `busbound gate` accepts, that `busbound compare` and `busbound merge` show, and that \
         `busbound gate --format json` writes. This page is generated from the catalog in the code.\n\n\
         \"Per step\" means per analyzed step. If the trace has no steps, it means per detected iteration, or else per \
         trace. Times are means over the steps and the GPUs of a run. Bytes, counts and host time are totals over its \
         GPUs, divided by the steps. If a run lacks a figure, a gate on that figure fails.\n\n\
         A **bus copy** crosses the link between host and device (H2D or D2H). A **peer copy** goes from one GPU to \
         another. A copy is **exposed** while no kernel runs on its device. Communication is **exposed** while no compute \
         kernel runs. A **rate** is bytes divided by the time in which at least one of the copies ran.\n\n",
    );
    text.push_str("| figure | unit | better | definition |\n|---|---|---|---|\n");
    for &figure in FigureId::ALL {
        let unit = figure.unit().phrase(Unit::Step);
        let better = figure.better().word();
        let _ = writeln!(text, "| `{figure}` | {unit} | {better} | {} |", figure.definition());
    }
    text.push_str(
        "\n`--per-step NAME=COUNT` adds the figure `NAME_per_s`: what one step processes, divided by `step_p50`. \
         `--per-step tokens=16384` makes `tokens_per_s` available. It needs marked steps.\n",
    );
    let parts: Vec<String> = FigureId::PARTS.iter().map(|figure| format!("`{figure}`")).collect();
    let _ = write!(
        text,
        "\nThese figures do not overlap, and their sum is `{}`: {}.\n\n",
        FigureId::SpanMs,
        parts.join(", ")
    );
    text.push_str(&phases());
    text.push_str(
        "`compare` also shows these for each direction and memory kind:\n\n\
         | row | unit | definition |\n|---|---|---|\n",
    );
    for figure in CopyFigure::ALL {
        let unit = figure.unit().phrase(Unit::Step);
        let _ = writeln!(text, "| {} | {unit} | {} |", figure.label(), figure.definition());
    }
    text
}

/// The phases that `busbound top` shows.
fn phases() -> String {
    let parts = |phase: &Phase| {
        let parts = FigureId::PARTS.iter().filter(|part| Phase::of(**part) == Some(*phase));
        parts.map(|part| format!("`{part}`")).collect::<Vec<_>>().join(", ")
    };
    let all: Vec<String> = Phase::ALL.iter().map(|phase| format!("*{phase}* ({})", parts(phase))).collect();
    format!(
        "`busbound top` groups them into phases: {}. `{}` counts as *{}* there, not as *{}*.\n\n",
        all.join(", "),
        FigureId::KernelWaitMs,
        Phase::Transfer,
        Phase::Compute
    )
}
