//! Reads lines of bounded length: a client that never ends a line must not fill the memory.

use std::io::{self, BufRead};

/// Messages to this server are paths and options.
pub(super) const LONGEST_LINE: usize = 1 << 20;

/// One line of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Text(Vec<u8>),
    /// Longer than [`LONGEST_LINE`]; it was skipped.
    TooLong,
}

/// The next line without its end; `None` at the end of the input.
pub(super) fn next_line(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let (mut line, mut too_long, mut any) = (Vec::new(), false, false);
    loop {
        let bytes = match input.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if bytes.is_empty() {
            break;
        }
        any = true;
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        if !too_long && line.len() + part.len() <= LONGEST_LINE {
            line.extend_from_slice(part);
        } else {
            too_long = true;
            line = Vec::new();
        }
        let used = end.map_or(bytes.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            break;
        }
    }
    Ok(any.then_some(if too_long { Line::TooLong } else { Line::Text(line) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_one_is_read() {
        let mut text = b"one\n".to_vec();
        text.extend(vec![b'x'; LONGEST_LINE + 1]);
        text.extend(b"\n\nlast");
        let mut input = io::BufReader::with_capacity(7, text.as_slice());
        let mut next = || next_line(&mut input).unwrap();
        assert_eq!(next(), Some(Line::Text(b"one".to_vec())));
        assert_eq!(next(), Some(Line::TooLong));
        assert_eq!(next(), Some(Line::Text(Vec::new())));
        assert_eq!(next(), Some(Line::Text(b"last".to_vec())));
        assert_eq!(next(), None);
    }
}
