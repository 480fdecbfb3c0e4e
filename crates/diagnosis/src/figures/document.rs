//! The catalog as a page of the documentation.

use std::fmt::Write;

use crate::figures::{CopyFigure, FigureId};
use crate::unit::Unit;

/// docs/figures.md.
pub fn document() -> String {
    let mut text = String::from(
        "# Figures\n\n\
         Every figure that `busbound gate` takes, `busbound compare` and `busbound merge` show and \
         `busbound gate --format json` writes. This page is generated from the catalog in the code.\n\n\
         Times \"per step\" are means over the judged steps (or rounds, or the whole trace where there are none) and over \
         the GPUs of a run; bytes, counts and host time are totals over its GPUs, per step. A run that does not have a \
         figure does not pass a gate on it.\n\n\
         A **bus copy** crosses the link between host and device (H2D or D2H). A **peer copy** goes from one GPU to \
         another. A copy is **exposed** while no kernel runs on its device, communication while no compute kernel does. \
         A **rate** is bytes over the time at which at least one of the copies ran.\n\n",
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
    let _ =
        write!(text, "\nThese never overlap and sum to `{}`: {}.\n\n", FigureId::SpanMs, parts.join(", "));
    text.push_str(
        "`compare` also shows these for each direction and kind of memory:\n\n\
         | row | unit | definition |\n|---|---|---|\n",
    );
    for figure in CopyFigure::ALL {
        let unit = figure.unit().phrase(Unit::Step);
        let _ = writeln!(text, "| {} | {unit} | {} |", figure.label(), figure.definition());
    }
    text
}
