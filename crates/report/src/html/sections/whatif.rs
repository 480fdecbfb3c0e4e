//! What if: the step with changes, as bars and as a timeline to flip.

use askama::Template;
use busbound_diagnosis::quantity::{bytes, milliseconds, milliseconds_range};
use busbound_diagnosis::{Unit, WhatIf};

use super::{Context, SectionSpec};
use crate::error::RenderError;
use crate::html::filters;
use crate::text::{capitalized, whatif as text};

pub(super) const SECTION: SectionSpec =
    SectionSpec { id: "whatif", heading: "What if", link: "What if", needs_script: false, body };

#[derive(Template)]
#[template(path = "whatif.html")]
struct WhatIfView {
    whatif: Option<Prediction>,
    no_prediction: Option<String>,
    /// Whether the picture has predicted lanes.
    is_drawn: bool,
}

struct Prediction {
    statement: String,
    unit: Unit,
    rows: Vec<Scenario>,
    to_do: Vec<(String, String)>,
    notes: Vec<String>,
}

struct Scenario {
    change: String,
    time: String,
    range: String,
    /// Of the longest bar.
    percent: f64,
    low: f64,
    width: f64,
    is_now: bool,
    memory: String,
}

fn body(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    let whatif = &context.drawn.whatif;
    let view = WhatIfView {
        no_prediction: whatif.as_ref().err().map(ToString::to_string),
        whatif: whatif.as_ref().ok().map(prediction),
        is_drawn: context.drawn.picture.predicted_from.is_some(),
    };
    Ok(Some(view.render()?))
}

fn prediction(answer: &WhatIf) -> Prediction {
    let now = text::now(answer);
    let scenarios = answer.scenarios.iter().map(|one| one.high_ms);
    let widest = scenarios.chain(now.iter().map(|(_, ms)| *ms)).fold(f64::MIN_POSITIVE, f64::max);
    let of_widest = |ms: f64| 100.0 * ms / widest;
    let now = now.into_iter().map(|(what, ms)| Scenario {
        change: what.to_owned(),
        time: milliseconds(ms),
        range: String::new(),
        percent: of_widest(ms),
        low: 0.0,
        width: 0.0,
        is_now: true,
        memory: String::new(),
    });
    let mut rows: Vec<Scenario> = now.collect();
    rows.extend(answer.scenarios.iter().map(|one| Scenario {
        change: one.apply.join(" + "),
        time: milliseconds(one.step_ms),
        range: milliseconds_range(one.low_ms, one.high_ms),
        percent: of_widest(one.step_ms),
        low: of_widest(one.low_ms),
        width: of_widest(one.high_ms - one.low_ms),
        is_now: false,
        memory: if one.extra_bytes > 0 {
            format!("+{} on the GPU", bytes(one.extra_bytes))
        } else {
            String::new()
        },
    }));
    let notes = std::iter::once(format!("{}.", capitalized(&text::replay(answer))))
        .chain(text::range_from(answer))
        .chain(text::power(answer))
        .chain(answer.notes.iter().cloned());
    Prediction {
        statement: answer.statement.clone(),
        unit: answer.unit,
        rows,
        to_do: text::to_do(answer),
        notes: notes.collect(),
    }
}
