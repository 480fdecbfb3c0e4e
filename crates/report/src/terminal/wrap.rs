//! How does a sentence fit the terminal width?

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

/// Terminal columns that a text takes: a Chinese character takes two.
pub(super) fn columns_of(text: &str) -> usize {
    text.width()
}

/// Text wrapped at spaces into lines of `room` columns; gaps between words keep their width. A number stays with its
/// unit. A word longer than the room, usually a path, stays whole so that it can be copied.
pub(super) fn broken(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let (mut used, mut gap) = (0, 0);
    for word in text.split(' ').fold(Vec::new(), glued) {
        let length = columns_of(&word);
        if length == 0 {
            gap += 1;
            continue;
        }
        if used > 0 && used + gap + length > room {
            lines.push(String::new());
            used = 0;
        } else if let Some(line) = lines.last_mut() {
            // Spaces before the first word are indentation in a tree; spaces at a line end are dropped.
            line.push_str(&" ".repeat(gap));
            used += gap;
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(&word);
        }
        used += length;
        gap = 1;
    }
    lines
}

/// Joins a unit, also one like `ms/step`, to the number before it, and an id to `[explain:`.
fn glued(mut words: Vec<String>, word: &str) -> Vec<String> {
    const UNITS: [&str; 17] = [
        "%", "ns", "µs", "ms", "s", "h", "B", "kB", "MB", "GB", "B/s", "kB/s", "MB/s", "GB/s", "MHz",
        "TFLOP/s", "W",
    ];
    let bare = word.trim_end_matches([',', ';', ':', '.', ')']);
    let is_unit = |text: &str| UNITS.contains(&text);
    // `ms/step`, and `µs–3.14 ms` in a range of two units.
    let is_unit = is_unit(bare) || bare.split_once(['/', '–']).is_some_and(|(unit, _)| is_unit(unit));
    let belongs =
        |last: &&mut String| *last == "[explain:" || is_unit && last.ends_with(|c: char| c.is_ascii_digit());
    match words.last_mut().filter(belongs) {
        Some(number) => {
            number.push(' ');
            number.push_str(word);
        }
        None => words.push(word.to_owned()),
    }
    words
}

/// Text after a head, with further lines aligned below the first.
pub(super) fn hanging(out: &mut String, head: &str, text: &str, width: u16) {
    hanging_with_lead(out, head, &Lead { text: "", style: Style::new() }, text, width);
}

/// The first words of a text, with their own style.
pub(super) struct Lead<'t> {
    pub(super) text: &'t str,
    pub(super) style: Style,
}

/// As [`hanging`], with a lead before the text. A lead that has to wrap stays unstyled.
pub(super) fn hanging_with_lead(out: &mut String, head: &str, lead: &Lead<'_>, text: &str, width: u16) {
    let style = lead.style;
    let text = format!("{}{text}", lead.text);
    let width = usize::from(width);
    let mut indent = columns_of(head);
    // If the head takes more than half of the width, the text goes below it.
    let under = indent > width / 2;
    out.push_str(if under { head.trim_end() } else { head });
    if under {
        indent = 4;
    }
    for (i, line) in broken(&text, width.saturating_sub(indent)).iter().enumerate() {
        if i > 0 || under {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
        }
        match line.split_at_checked(lead.text.len()).filter(|_| i == 0 && !lead.text.is_empty()) {
            Some((lead, rest)) => out.push_str(&format!("{style}{lead}{style:#}{rest}")),
            None => out.push_str(line),
        }
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(head: &str, text: &str, width: u16) -> String {
        let mut out = String::new();
        hanging(&mut out, head, text, width);
        out
    }

    #[test]
    fn lines_align_below_the_first_and_have_no_trailing_spaces() {
        assert_eq!(
            shown("  copies  ", "H2D pageable  12 copies/step  2 GB", 26),
            "  copies  H2D pageable  12\n          copies/step\n          2 GB\n"
        );
    }

    #[test]
    fn a_path_stays_whole_and_a_long_head_gets_its_own_line() {
        assert_eq!(
            shown("  ", "in /a/very/long/path.json: no", 12),
            "  in\n  /a/very/long/path.json:\n  no\n"
        );
        assert_eq!(shown("  a long label  ", "path: words", 20), "  a long label\n    path: words\n");
    }
}
