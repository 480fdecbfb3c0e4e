//! How does a table fit the terminal width? Titles wrap first, then text; numbers never wrap. If that is not enough, each
//! row becomes a sentence.

use super::wrap::{broken, columns_of, hanging};
use super::{FAINT, line};
use crate::text::is_numeric;

const INDENT: &str = "  ";
const GAP: usize = 2;
/// If a text column is narrower than this, rows are easier to read as sentences.
const LEAST_TEXT: usize = 14;
/// If the names have this much room, titles do not wrap for them.
const ENOUGH_FOR_NAMES: usize = 24;

pub(super) fn rows(out: &mut String, titles: &[impl AsRef<str>], rows: &[Vec<String>], width: u16) {
    let titles: Vec<&str> = titles.iter().map(AsRef::as_ref).collect();
    let room = usize::from(width).saturating_sub(INDENT.len());
    match widths(&titles, rows, room) {
        Some(widths) => grid(out, &titles, rows, &widths),
        None => sentences(out, &titles, rows, width),
    }
}

/// The width of each column, or `None` if the table does not fit.
fn widths(titles: &[&str], rows: &[Vec<String>], room: usize) -> Option<Vec<usize>> {
    let cells = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| columns_of(cell)).max().unwrap_or(0)
    };
    let over = |widths: &[usize]| {
        (widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)).saturating_sub(room)
    };
    let natural: Vec<usize> =
        titles.iter().enumerate().map(|(i, title)| cells(i).max(columns_of(title))).collect();
    let mut narrow = natural.clone();
    for column in (0..titles.len()).rev() {
        let least = cells(column).max(least_title(titles[column]));
        narrow[column] = narrow[column].saturating_sub(over(&narrow)).max(least);
    }
    if over(&narrow) == 0 {
        return Some(narrow);
    }
    let names = natural.first().copied().unwrap_or(0);
    let mut widths = if names >= ENOUGH_FOR_NAMES + over(&natural) { natural } else { narrow };
    let mut texts: Vec<usize> = (0..titles.len()).filter(|&i| i == 0 || !is_numeric(rows, i)).collect();
    texts.sort_by_key(|&column| std::cmp::Reverse(widths[column]));
    for column in texts {
        let least = LEAST_TEXT.max(least_title(titles[column])).min(widths[column]);
        widths[column] = widths[column].saturating_sub(over(&widths)).max(least);
    }
    (over(&widths) == 0).then_some(widths)
}

/// The smallest width at which a title takes at most two lines.
fn least_title(title: &str) -> usize {
    let longest = title.split(' ').map(columns_of).max().unwrap_or(0);
    (longest..columns_of(title)).find(|width| broken(title, *width).len() <= 2).unwrap_or(columns_of(title))
}

fn grid(out: &mut String, titles: &[&str], rows: &[Vec<String>], widths: &[usize]) {
    let right: Vec<bool> = (0..titles.len()).map(|column| column > 0 && is_numeric(rows, column)).collect();
    let heads: Vec<Vec<String>> =
        titles.iter().zip(widths).map(|(title, width)| broken(title, *width)).collect();
    let height = heads.iter().map(Vec::len).max().unwrap_or(0);
    for i in 0..height {
        // Titles are aligned to the bottom, next to their column.
        let cells =
            heads.iter().map(|head| (i + head.len()).checked_sub(height).map_or("", |i| head[i].as_str()));
        line(out, &format!("{INDENT}{FAINT}{}{FAINT:#}", aligned(cells, widths, &right)));
    }
    for row in rows {
        let cells: Vec<Vec<String>> =
            row.iter().zip(widths).map(|(cell, width)| text_lines(cell, *width)).collect();
        for i in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            let cells = cells.iter().map(|lines| lines.get(i).map_or("", String::as_str));
            line(out, &format!("{INDENT}{}", aligned(cells, widths, &right)));
        }
    }
}

fn aligned<'a>(cells: impl Iterator<Item = &'a str>, widths: &[usize], right: &[bool]) -> String {
    let mut text = String::new();
    for (i, cell) in cells.enumerate() {
        if i > 0 {
            text.push_str(&" ".repeat(GAP));
        }
        let pad = " ".repeat(widths[i].saturating_sub(columns_of(cell)));
        if right[i] {
            text.push_str(&pad);
        }
        text.push_str(cell);
        if !right[i] {
            text.push_str(&pad);
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// Text in lines of at most `room`, indented after the first. Long words break too: nobody copies a kernel's name out of
/// a table.
fn text_lines(text: &str, room: usize) -> Vec<String> {
    let words = text.trim_start();
    let indent = columns_of(text) - columns_of(words);
    if columns_of(text) <= room {
        return vec![text.to_owned()];
    }
    let mut lines = Vec::new();
    let mut rest = words.to_owned();
    while !rest.is_empty() {
        let margin = if lines.is_empty() { indent } else { indent + 2 };
        let within = room.saturating_sub(margin).max(8);
        let line = broken(&rest, within).swap_remove(0);
        let line = if columns_of(&line) > within { cut(&line, within) } else { &line };
        lines.push(format!("{:margin$}{line}", ""));
        rest = rest[line.len()..].trim_start().to_owned();
    }
    lines
}

/// The first part of a word: up to its last punctuation within the room, if that uses more than half of the room.
fn cut(word: &str, room: usize) -> &str {
    let fits = word.char_indices().map(|(at, c)| at + c.len_utf8());
    let most = fits.take_while(|end| columns_of(&word[..*end]) <= room).last().unwrap_or(word.len());
    let punctuation = |c: char| c.is_ascii_punctuation() && c != '…';
    match word[..most].rfind(punctuation) {
        Some(at) if 2 * (at + 1) > room => &word[..=at],
        _ => &word[..most],
    }
}

/// `name: count 48, bytes 8.05 GB, time 821 ms`.
fn sentences(out: &mut String, titles: &[&str], rows: &[Vec<String>], width: u16) {
    if let Some(title) = titles.first().filter(|title| !title.is_empty()) {
        let mut head = String::new();
        hanging(&mut head, INDENT, title, width);
        line(out, &format!("{FAINT}{}{FAINT:#}", head.trim_end()));
    }
    for row in rows {
        let said = row.iter().zip(titles).skip(1).filter(|(cell, _)| !["", "–"].contains(&cell.as_str()));
        let said: Vec<String> = said.map(|(cell, title)| named(title, cell)).collect();
        let name = row.first().map_or("", String::as_str);
        let indent = INDENT.len() + columns_of(name) - columns_of(name.trim_start());
        let sentence = if said.is_empty() {
            name.to_owned()
        } else {
            format!("{}: {}", name.trim_start(), said.join(", "))
        };
        let room = usize::from(width).saturating_sub(indent + 2);
        for (i, text) in broken(sentence.trim_start(), room).iter().enumerate() {
            let indent = if i == 0 { indent } else { indent + 2 };
            line(out, &format!("{:indent$}{text}", ""));
        }
    }
}

/// `time 821 ms`; a unit in the title moves behind its number.
fn named(title: &str, cell: &str) -> String {
    match title.strip_suffix(" GB/s") {
        Some(title) => format!("{title} {cell} GB/s"),
        None if title.is_empty() => cell.to_owned(),
        None => format!("{title} {cell}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(titles: &[&str], cells: &[&[&str]], width: u16) -> String {
        let cells: Vec<Vec<String>> =
            cells.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect();
        let mut out = String::new();
        rows(&mut out, titles, &cells, width);
        out.replace(&FAINT.to_string(), "").replace(&format!("{FAINT:#}"), "")
    }

    const TITLES: [&str; 4] = ["copies", "class", "rate", "pinned limit"];
    const ROWS: [&[&str]; 2] =
        [&["to the device, over 100 MB", "slow", "9.81 GB/s", "55.35 GB/s"], &["  back", "fine", "–", "–"]];

    #[test]
    fn titles_wrap_before_names_and_numbers_never_wrap() {
        assert_eq!(
            shown(&TITLES, &ROWS, 60),
            "  copies                      class       rate  pinned limit\n\
             \x20 to the device, over 100 MB  slow   9.81 GB/s    55.35 GB/s\n\
             \x20   back                      fine           –             –\n"
        );
        assert_eq!(
            shown(&TITLES, &ROWS, 58),
            "                                                    pinned\n\
             \x20 copies                      class       rate       limit\n\
             \x20 to the device, over 100 MB  slow   9.81 GB/s  55.35 GB/s\n\
             \x20   back                      fine           –           –\n"
        );
        assert_eq!(
            shown(&TITLES, &ROWS, 48),
            "                                          pinned\n\
             \x20 copies            class       rate       limit\n\
             \x20 to the device,    slow   9.81 GB/s  55.35 GB/s\n\
             \x20   over 100 MB\n\
             \x20   back            fine           –           –\n"
        );
    }

    #[test]
    fn without_room_rows_are_sentences() {
        assert_eq!(
            shown(&TITLES, &ROWS, 40),
            "  copies\n\
             \x20 to the device, over 100 MB: class\n\
             \x20   slow, rate 9.81 GB/s, pinned limit\n\
             \x20   55.35 GB/s\n\
             \x20   back: class fine\n"
        );
        assert_eq!(named("peak GB/s", "450.0"), "peak 450.0 GB/s");
    }
}
