//! A new trace of a directory that is watched, in a few lines.

use busbound_diagnosis::quantity::{milliseconds, milliseconds_range};
use busbound_diagnosis::{CheckedPrediction, FindingId, SinceLast, Watched};

use super::{FAINT, STRONG, hanging, line, without_styles};
use crate::error::RenderError;
use crate::format::Style;
use crate::json::one_line;
use crate::text::{diagnosis as text, prize};

/// One short block: the verdict, what changed since the last trace, and whether that was predicted.
pub fn watched_as_terminal(watched: &Watched, style: &Style) -> String {
    let (diagnosis, width) = (&watched.diagnosis, style.width);
    let mut out = String::new();
    line(&mut out, &format!("{FAINT}{}{FAINT:#}", diagnosis.source.path));
    let mut first = String::new();
    hanging(&mut first, "", &prize::headline(diagnosis), width);
    line(&mut out, &format!("{STRONG}{}{STRONG:#}", first.trim_end()));
    if let Some(since) = &watched.since {
        since_last(&mut out, watched, since, width);
    }
    if let Some(finding) = diagnosis.findings.first() {
        let saving = prize::saving(finding, diagnosis);
        hanging(&mut out, "  1  ", &format!("{}: {saving}  [explain: {}]", finding.title, finding.id), width);
    }
    if let Some(sentence) = text::cut_off(diagnosis) {
        hanging(&mut out, "  note: ", sentence, width);
    }
    out.push('\n');
    if style.color { out } else { without_styles(&out) }
}

fn since_last(out: &mut String, watched: &Watched, since: &SinceLast, width: u16) {
    hanging(out, "  since the last trace: ", &since.statement, width);
    let bound = watched.diagnosis.verdict.bound;
    if since.bound != bound {
        let verdicts = format!("{} → {}", since.bound.title(), bound.title());
        hanging(out, "  verdict: ", &verdicts.to_lowercase(), width);
    }
    let ids = |all: &[FindingId]| all.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(", ");
    if !since.gone.is_empty() {
        hanging(out, "  no longer found: ", &ids(&since.gone), width);
    }
    if !since.appeared.is_empty() {
        hanging(out, "  found now: ", &ids(&since.appeared), width);
    }
    if let Some(prediction) = &since.prediction {
        hanging(out, "  predicted: ", &checked(prediction), width);
    }
}

/// `98.3–113 ms by pinning host buffers; measured 105 ms: inside the range`.
fn checked(prediction: &CheckedPrediction) -> String {
    let CheckedPrediction { low_ms, high_ms, measured_ms, .. } = *prediction;
    let verdict = match () {
        () if prediction.inside => "inside the range".to_owned(),
        () if measured_ms < low_ms => format!("{} faster than the range", milliseconds(low_ms - measured_ms)),
        () => format!("{} slower than the range", milliseconds(measured_ms - high_ms)),
    };
    format!(
        "{} by {}; measured {}: {verdict}",
        milliseconds_range(low_ms, high_ms),
        prediction.doing.join(" and "),
        milliseconds(measured_ms)
    )
}

/// The same as one line of JSON.
///
/// # Errors
/// If it cannot be written as JSON.
pub fn watched_as_json_line(watched: &Watched) -> Result<String, RenderError> {
    one_line(watched)
}
