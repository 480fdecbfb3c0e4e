//! What could not be read?

use super::Scope;
use crate::analysis::incomplete;
use crate::answers::survey::LostPart;
use crate::quantity::plural;

pub(super) fn parts(scope: &Scope<'_>) -> Vec<String> {
    let source = &scope.survey.source;
    let text = |lost| format!("{}; no figure includes the lost part.", lost_part(lost, source.format));
    source.lost.iter().map(text).collect()
}

fn lost_part(lost: &LostPart, format: &str) -> String {
    if !lost.what.has_offset() {
        let times = if lost.count > 1 { format!(", {} times", lost.count) } else { String::new() };
        let table = lost.table.as_ref().map(|table| format!(" in table {table}")).unwrap_or_default();
        return format!("{}{table}{times}", lost.text);
    }
    let place = match lost.in_compressed_bytes {
        true => " of the compressed file",
        false if busbound_trace::format(format).is_some_and(|format| format.is_json) => " of the JSON",
        false => "",
    };
    match lost.count {
        1 => format!("{} at byte {}{place}", lost.text, lost.first_offset),
        count => format!(
            "{} in {}, first at byte {}{place}",
            lost.text,
            plural(count, "place", "places"),
            lost.first_offset
        ),
    }
}

pub(super) fn rows(scope: &Scope<'_>) -> Vec<String> {
    incomplete::lost_rows(scope.facts.trace).into_iter().map(not_counted).collect()
}

pub(super) fn no_end(scope: &Scope<'_>) -> Option<String> {
    incomplete::without_end(scope.facts.trace).map(not_counted)
}

fn not_counted(what: String) -> String {
    format!("{what}; no figure includes their time.")
}
