//! How does an answer stay small? Lists and texts are cut, the least important ones first, and what was left off is counted.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// How many entries and characters are kept, from much to little.
const LEVELS: [(usize, usize); 6] = [(200, 4000), (32, 1500), (12, 800), (6, 500), (3, 300), (1, 160)];
/// Objects with more members are tables, whose rows can be left off; no struct has so many.
const LARGEST_STRUCT: usize = 32;
/// A longer name of a member comes from a trace, not from us.
const LONGEST_KEY: usize = 120;

/// What was left off, by place: `findings[].places` is the places of all findings.
type LeftOff = BTreeMap<String, usize>;

/// The text, with at most this many bytes as JSON.
pub(super) fn bounded_text(text: &str, most: usize) -> String {
    let length = |text: &str| serde_json::to_string(text).map_or(0, |json| json.len());
    let mut kept = text.to_owned();
    // Escapes take up to six times as many bytes.
    let mut limit = most.saturating_sub(16);
    while length(&kept) > most && limit > 0 {
        kept = shortened(text, limit);
        limit -= limit.div_ceil(8);
    }
    kept
}

/// An object of these members, the most important first, with at most this many bytes as JSON. `left_off` counts what
/// is missing.
pub(super) fn bounded_object(mut parts: Vec<(&'static str, Value)>, most: usize) -> Value {
    let mut left_off: Vec<LeftOff> = vec![LeftOff::new(); parts.len()];
    let mut dropped = LeftOff::new();
    for (items, letters) in LEVELS {
        for at in (0..parts.len()).rev() {
            let (name, value) = &mut parts[at];
            cut(value, name, items, letters, &mut left_off[at]);
            let is_first = items == LEVELS[0].0;
            if !is_first && fits(&parts, &left_off, &dropped, most) {
                return assembled(&parts, &left_off, &dropped);
            }
        }
        if fits(&parts, &left_off, &dropped, most) {
            return assembled(&parts, &left_off, &dropped);
        }
    }
    while parts.len() > 1 && !fits(&parts, &left_off, &dropped, most) {
        if let Some((name, value)) = parts.pop() {
            let entries = value.as_array().map_or(1, Vec::len);
            let before = left_off.pop().and_then(|mut left| left.remove(name)).unwrap_or(0);
            dropped.insert(name.to_owned(), entries + before);
        }
    }
    assembled(&parts, &left_off, &dropped)
}

fn fits(parts: &[(&'static str, Value)], left_off: &[LeftOff], dropped: &LeftOff, most: usize) -> bool {
    assembled(parts, left_off, dropped).to_string().len() <= most
}

fn assembled(parts: &[(&'static str, Value)], left_off: &[LeftOff], dropped: &LeftOff) -> Value {
    let mut object: Map<String, Value> =
        parts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let all = left_off.iter().flatten().chain(dropped);
    let all: Map<String, Value> = all.map(|(at, count)| (at.clone(), Value::from(*count))).collect();
    if !all.is_empty() {
        object.insert("left_off".to_owned(), Value::Object(all));
    }
    Value::Object(object)
}

fn cut(value: &mut Value, place: &str, items: usize, letters: usize, left_off: &mut LeftOff) {
    match value {
        Value::String(text) if text.chars().nth(letters).is_some() => *text = shortened(text, letters),
        Value::Array(list) => {
            if list.len() > items {
                *left_off.entry(place.to_owned()).or_default() += list.len() - items;
                list.truncate(items);
            }
            let inner = format!("{place}[]");
            for one in list {
                cut(one, &inner, items, letters, left_off);
            }
        }
        Value::Object(object) => cut_object(object, place, items, letters, left_off),
        _ => {}
    }
}

fn cut_object(
    object: &mut Map<String, Value>,
    place: &str,
    items: usize,
    letters: usize,
    left_off: &mut LeftOff,
) {
    let (before, most) = (object.len(), items.max(LARGEST_STRUCT));
    let mut kept = 0;
    object.retain(|key, _| {
        kept += 1;
        kept <= most && key.len() <= LONGEST_KEY
    });
    if object.len() < before {
        *left_off.entry(place.to_owned()).or_default() += before - object.len();
    }
    for (key, one) in object {
        cut(one, &format!("{place}.{key}"), items, letters, left_off);
    }
}

/// The first characters, with a mark if there are more.
fn shortened(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters.saturating_sub(1)) {
        Some((end, _)) if end < text.len() && text.chars().count() > letters => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_fits_is_not_changed() {
        let parts = || vec![("verdict", json!({"bound": "transfer"})), ("findings", json!([1, 2, 3]))];
        assert_eq!(
            bounded_object(parts(), 1000),
            json!({"verdict": {"bound": "transfer"}, "findings": [1, 2, 3]})
        );
    }

    #[test]
    fn the_least_important_list_is_cut_first_and_the_rest_is_counted() {
        let list = |name: &str| json!((0..40).map(|n| format!("{name} {n}")).collect::<Vec<_>>());
        let parts = vec![("first", list("first")), ("second", list("second"))];
        let cut = bounded_object(parts, 900);
        let entries = |name: &str| cut[name].as_array().map(Vec::len);
        assert_eq!((entries("first"), entries("second")), (Some(40), Some(32)));
        assert_eq!(cut["left_off"], json!({"second": 8}));
        assert!(cut.to_string().len() <= 900);
    }

    #[test]
    fn anything_fits() {
        let name = "\u{1}\"é".repeat(1000);
        let rows: Map<String, Value> = (0..500).map(|n| (format!("{n}{name}"), json!(n))).collect();
        let row = json!({"a": vec![name.clone(); 60], "b": rows});
        let nested = json!(vec![json!([row]); 5]);
        for most in [400, 1000, 16_000] {
            let parts = vec![("verdict", json!(name)), ("nested", nested.clone()), ("again", nested.clone())];
            let cut = bounded_object(parts, most);
            let bytes = cut.to_string().len();
            // The most important member stays, whatever it takes: 160 characters of up to six bytes.
            assert!(bytes <= most.max(1100), "{bytes} for {most}");
            assert!(cut["left_off"].is_object());
        }
        assert!(serde_json::to_string(&bounded_text(&name, 500)).unwrap().len() <= 500);
        assert_eq!(bounded_text("short", 500), "short");
    }
}
