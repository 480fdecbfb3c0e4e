//! How is JSON scanned quickly without trusting it? A cursor over bytes that never panics, never recurses, and
//! distinguishes "the bytes ran out" from "this is not JSON".
//!
//! More lenient than the standard, like profilers are: it accepts NaN and Infinity, trailing commas, control
//! characters and any bytes inside strings. On valid JSON it agrees with `serde_json` (see the property tests).

use memchr::{memchr2, memmem};

use crate::kineto::number::{NotUsable, leading_micros, micros_to_nanos};

/// If something that looks like an event begins inside another value, and that value continues for this many more
/// bytes, it has lost its end and is swallowing the events after it.
pub(crate) const PATIENCE: usize = 64 << 10;

/// How many bytes ahead `ph` may be for an object to look like an event.
const LOOK_AHEAD: usize = 512;

/// Why a value could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The bytes ended first. More bytes might help.
    End,
    /// No further bytes can make this valid JSON.
    Malformed,
}

pub(crate) type Scan<T> = Result<T, Fault>;

/// A string exactly as in the file, without its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Raw<'a> {
    pub(crate) bytes: &'a [u8],
    /// Whether it contains a backslash.
    pub(crate) escaped: bool,
}

/// How to interpret a backslash in a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Backslash {
    /// It escapes the next character, as in standard JSON.
    #[default]
    Escapes,
    /// It may be a plain character before the closing quote (`"C:\traces\"`): the string ends at a quote after which
    /// valid JSON can continue. Used only for events that cannot be read otherwise.
    MayEndString,
}

#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    pos: usize,
    backslash: Backslash,
    patience: usize,
    /// Where something that looks like an event first began inside another value.
    nested_event: Option<usize>,
}

impl<'a> Cursor<'a> {
    pub(crate) fn at(bytes: &'a [u8], pos: usize) -> Self {
        Self { bytes, pos, backslash: Backslash::Escapes, patience: PATIENCE, nested_event: None }
    }

    pub(crate) fn with_backslash(mut self, backslash: Backslash) -> Self {
        self.backslash = backslash;
        self
    }

    /// Uses a smaller limit than [`PATIENCE`] for values that swallow what looks like an event.
    pub(crate) fn with_patience(mut self, patience: usize) -> Self {
        self.patience = patience;
        self
    }

    /// Where something that looks like an event began inside the value read since the last
    /// [`forget_nested_event`](Self::forget_nested_event).
    pub(crate) fn nested_event(&self) -> Option<usize> {
        self.nested_event
    }

    #[inline]
    pub(crate) fn forget_nested_event(&mut self) {
        self.nested_event = None;
    }

    #[inline]
    pub(crate) fn pos(&self) -> usize {
        self.pos
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    #[inline]
    pub(crate) fn advance(&mut self) {
        self.pos += 1;
    }

    #[inline]
    pub(crate) fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.pos += 1;
        }
    }

    /// Skips white space and returns the byte after it, without taking it.
    #[inline]
    pub(crate) fn next_token(&mut self) -> Scan<u8> {
        self.skip_space();
        self.peek().ok_or(Fault::End)
    }

    #[inline]
    pub(crate) fn expect(&mut self, byte: u8) -> Scan<()> {
        if self.next_token()? == byte {
            self.pos += 1;
            Ok(())
        } else {
            Err(Fault::Malformed)
        }
    }

    /// The key of the next member, after consuming its colon; `None` at the end of the object, after consuming its
    /// brace. Skips commas anywhere.
    #[inline]
    pub(crate) fn next_key(&mut self) -> Scan<Option<&'a [u8]>> {
        loop {
            match self.next_token()? {
                b'"' => {
                    let key = self.string()?;
                    // Nearly every key is followed by exactly this.
                    if !self.take(b": ") {
                        self.expect(b':')?;
                    }
                    self.skip_space();
                    return Ok(Some(key.bytes));
                }
                b',' => self.pos += 1,
                b'}' => {
                    self.pos += 1;
                    return Ok(None);
                }
                _ => return Err(Fault::Malformed),
            }
        }
    }

    /// After the value of a member: a comma (consumed) or the closing brace (not consumed).
    #[inline]
    pub(crate) fn end_member(&mut self) -> Scan<()> {
        match self.next_token()? {
            b',' => {
                self.pos += 1;
                Ok(())
            }
            b'}' => Ok(()),
            _ => Err(Fault::Malformed),
        }
    }

    /// Consumes `text` if it comes next.
    #[inline]
    pub(crate) fn take<const N: usize>(&mut self, text: &[u8; N]) -> bool {
        let stands_here = self.bytes.get(self.pos..self.pos + N) == Some(text);
        if stands_here {
            self.pos += N;
        }
        stands_here
    }

    /// A string, from its opening quote.
    #[inline]
    pub(crate) fn string(&mut self) -> Scan<Raw<'a>> {
        debug_assert_eq!(self.peek(), Some(b'"'));
        self.pos += 1;
        self.rest_of_string()
    }

    /// A string whose opening quote has been consumed.
    #[inline]
    pub(crate) fn rest_of_string(&mut self) -> Scan<Raw<'a>> {
        let from = self.pos;
        let mut at = from;
        let mut escaped = false;
        loop {
            let Some(found) = find_quote_or_backslash(self.bytes, at) else {
                return Err(Fault::End);
            };
            if self.bytes[found] == b'"' {
                self.pos = found + 1;
                return Ok(Raw { bytes: &self.bytes[from..found], escaped });
            }
            escaped = true;
            if self.backslash == Backslash::MayEndString && self.json_goes_on_after_quote(found + 1) {
                self.pos = found + 2;
                return Ok(Raw { bytes: &self.bytes[from..=found], escaped });
            }
            at = found + 2;
            if at > self.bytes.len() {
                return Err(Fault::End);
            }
        }
    }

    fn json_goes_on_after_quote(&self, quote: usize) -> bool {
        if self.bytes.get(quote) != Some(&b'"') {
            return false;
        }
        let rest = &self.bytes[quote + 1..];
        match rest.iter().find(|b| !b.is_ascii_whitespace()) {
            Some(b',' | b'}' | b']' | b':') => true,
            Some(_) => false,
            None => true,
        }
    }

    /// A number or word without quotes: everything up to the next delimiter.
    #[inline]
    pub(crate) fn scalar(&mut self) -> Scan<&'a [u8]> {
        let from = self.pos;
        let rest = self.bytes.get(from..).unwrap_or_default();
        let len = rest.iter().position(|&b| ENDS_SCALAR[b as usize]).ok_or(Fault::End)?;
        if len == 0 {
            return Err(Fault::Malformed);
        }
        self.pos = from + len;
        Ok(&rest[..len])
    }

    /// A number, bare or in quotes (`"ts": "123.4"`); for anything else, the raw token.
    #[inline]
    pub(crate) fn number(&mut self) -> Scan<&'a [u8]> {
        match self.peek().ok_or(Fault::End)? {
            b'"' => Ok(self.string()?.bytes),
            b'{' | b'[' => {
                self.skip_value()?;
                Ok(b"")
            }
            _ => self.scalar(),
        }
    }

    /// Microseconds as nanoseconds: Kineto's usual form in one pass, any other form from its token.
    #[inline]
    pub(crate) fn micros(&mut self) -> Scan<Result<i64, NotUsable>> {
        if let Some((nanos, len)) = leading_micros(&self.bytes[self.pos..]) {
            self.pos += len;
            return Ok(Ok(nanos));
        }
        Ok(micros_to_nanos(self.number()?))
    }

    /// A string if it is one; any other value is skipped and gives `None`.
    #[inline]
    pub(crate) fn string_or_skip(&mut self) -> Scan<Option<Raw<'a>>> {
        if self.peek().ok_or(Fault::End)? == b'"' {
            return Ok(Some(self.string()?));
        }
        self.skip_value()?;
        Ok(None)
    }

    /// Skips any value and returns its bytes.
    #[inline]
    pub(crate) fn skip_value(&mut self) -> Scan<&'a [u8]> {
        let from = self.pos;
        match self.peek().ok_or(Fault::End)? {
            b'"' => {
                self.string()?;
            }
            b'{' | b'[' => self.skip_nested()?,
            _ => {
                self.scalar()?;
            }
        }
        Ok(&self.bytes[from..self.pos])
    }

    /// Skips an object or array of any depth.
    fn skip_nested(&mut self) -> Scan<()> {
        let mut depth = 0usize;
        // One bit per level, 1 for an object. Below 64 levels, bracket types are not checked.
        let mut kinds = 0u64;
        let mut overflowed = false;
        loop {
            match self.peek().ok_or(Fault::End)? {
                b'"' => {
                    self.string()?;
                    // A stray quote swaps the inside and the outside of all later strings. What follows is then not a
                    // separator, and only this event is lost.
                    if !matches!(self.next_token()?, b',' | b':' | b'}' | b']') {
                        return Err(Fault::Malformed);
                    }
                }
                open @ (b'{' | b'[') => {
                    if open == b'{' {
                        match self.nested_event {
                            None if self.event_begins_here() => {
                                self.nested_event = Some(self.pos);
                                if self.patience == 0 {
                                    return Err(Fault::Malformed);
                                }
                            }
                            Some(at) if self.pos - at > self.patience => return Err(Fault::Malformed),
                            _ => {}
                        }
                    }
                    depth += 1;
                    overflowed |= depth > 64;
                    kinds = kinds << 1 | u64::from(open == b'{');
                    self.pos += 1;
                }
                close @ (b'}' | b']') => {
                    if !overflowed && (kinds & 1 == 1) != (close == b'}') {
                        return Err(Fault::Malformed);
                    }
                    depth -= 1;
                    kinds >>= 1;
                    self.pos += 1;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ => self.pos += 1,
            }
        }
    }

    /// Whether the brace here opens what looks like an event in a list.
    fn event_begins_here(&self) -> bool {
        let ahead = &self.bytes[self.pos..self.bytes.len().min(self.pos + LOOK_AHEAD)];
        begins_event(self.bytes, self.pos)
            && follows_a_separator(self.bytes, self.pos)
            && memmem::find(ahead, b"\"ph\"").is_some()
    }
}

/// Whether the brace at `brace` opens an object whose first key is one that events use.
pub(crate) fn begins_event(bytes: &[u8], brace: usize) -> bool {
    const KEYS: [&[u8]; 11] = [
        b"\"ph\"",
        b"\"name\"",
        b"\"cat\"",
        b"\"pid\"",
        b"\"tid\"",
        b"\"ts\"",
        b"\"args\"",
        b"\"dur\"",
        b"\"id\"",
        b"\"bp\"",
        b"\"s\"",
    ];
    let mut cursor = Cursor::at(bytes, brace + 1);
    cursor.skip_space();
    let Some(rest) = bytes.get(cursor.pos()..) else { return false };
    rest.first() == Some(&b'"') && KEYS.iter().any(|key| rest.starts_with(key))
}

/// Whether the brace is at a position where a list element may begin: after a comma or `[`.
pub(crate) fn follows_a_separator(bytes: &[u8], brace: usize) -> bool {
    let before = bytes.get(..brace).unwrap_or_default();
    matches!(before.iter().rev().find(|b| !b.is_ascii_whitespace()), Some(b',' | b'[') | None)
}

/// The bytes that end a number or word. Everything else may be part of one: NaN and -Infinity are accepted here and
/// handled by the caller.
const ENDS_SCALAR: [bool; 256] = {
    let mut ends = [false; 256];
    let mut delimiters: &[u8] = b",}] \n\r\t:\"{[";
    while let [first, rest @ ..] = delimiters {
        ends[*first as usize] = true;
        delimiters = rest;
    }
    ends
};

/// The first quote or backslash at or after `at`.
///
/// Most strings in a trace are keys and short names. Checking eight bytes at a time in a register is faster than
/// calling the vector search, which takes over for long strings.
#[inline]
fn find_quote_or_backslash(bytes: &[u8], at: usize) -> Option<usize> {
    const SHORT: usize = 4;
    let mut at = at;
    for _ in 0..SHORT {
        let Some(word) = bytes.get(at..at + 8).and_then(|w| <[u8; 8]>::try_from(w).ok()) else { break };
        let word = u64::from_le_bytes(word);
        let hits = zero_bytes(word ^ repeat(b'"')) | zero_bytes(word ^ repeat(b'\\'));
        if hits != 0 {
            return Some(at + (hits.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    memchr2(b'"', b'\\', bytes.get(at..)?).map(|i| at + i)
}

const fn repeat(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The high bit of each zero byte. Exact for the lowest one, which is the only one used.
#[inline]
const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(repeat(1)) & !word & repeat(0x80)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(text: &str) -> Scan<usize> {
        let mut cursor = Cursor::at(text.as_bytes(), 0);
        cursor.skip_value().map(<[u8]>::len)
    }

    #[test]
    fn values_are_skipped_completely() {
        assert_eq!(skip(r#"{"a": [1, "]", {"b": "}\""}]},"#), Ok(29));
        assert_eq!(skip("NaN,"), Ok(3));
        assert_eq!(skip("[1, 2"), Err(Fault::End));
        assert_eq!(skip("[1, 2}"), Err(Fault::Malformed));
        assert_eq!(skip(r#""a\"#), Err(Fault::End));
        assert_eq!(skip(","), Err(Fault::Malformed));
    }

    #[test]
    fn deep_nesting_neither_recurses_nor_overflows() {
        let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        assert_eq!(skip(&deep), Ok(2_000_000));
    }

    #[test]
    fn a_backslash_before_the_closing_quote_ends_the_string_on_request() {
        let text = br#""C:\traces\", "pid": 1"#;
        let mut cursor = Cursor::at(text, 0).with_backslash(Backslash::MayEndString);
        assert_eq!(cursor.string().map(|raw| raw.bytes), Ok(&br"C:\traces\"[..]));
        let mut strict = Cursor::at(text, 0);
        assert_eq!(strict.string().map(|raw| raw.bytes), Ok(&br#"C:\traces\", "#[..]));
    }

    #[test]
    fn long_strings_are_found_at_every_length() {
        for len in 0..100 {
            let text = format!("\"{}\"", "x".repeat(len));
            let mut cursor = Cursor::at(text.as_bytes(), 0);
            assert_eq!(cursor.string().map(|raw| raw.bytes.len()), Ok(len));
        }
    }
}
