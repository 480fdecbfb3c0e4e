//! What does this string say? Resolves escapes and makes damage visible.

use std::borrow::Cow;

use crate::kineto::cursor::Raw;

/// The text of a string, and the damage found in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decoded<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) stray_backslash: bool,
    pub(crate) invalid_utf8: bool,
}

/// Resolves escapes. A backslash that does not begin an escape is kept as a character.
pub(crate) fn decode(raw: Raw<'_>) -> Decoded<'_> {
    let (bytes, stray_backslash) = if raw.escaped {
        let (bytes, stray) = unescape(raw.bytes);
        (Cow::Owned(bytes), stray)
    } else {
        (Cow::Borrowed(raw.bytes), false)
    };
    let (text, invalid_utf8) = match bytes {
        Cow::Borrowed(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            let replaced = matches!(text, Cow::Owned(_));
            (text, replaced)
        }
        Cow::Owned(bytes) => match String::from_utf8(bytes) {
            Ok(text) => (Cow::Owned(text), false),
            Err(error) => (Cow::Owned(String::from_utf8_lossy(error.as_bytes()).into_owned()), true),
        },
    };
    Decoded { text, stray_backslash, invalid_utf8 }
}

fn unescape(bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut out = Vec::with_capacity(bytes.len());
    let mut stray = false;
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        at += 1;
        if b != b'\\' {
            out.push(b);
            continue;
        }
        let simple = match bytes.get(at) {
            Some(b'"') => b'"',
            Some(b'\\') => b'\\',
            Some(b'/') => b'/',
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                match unicode_escape(&bytes[at + 1..]) {
                    Some((character, used)) => {
                        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                        at += 1 + used;
                    }
                    None => {
                        stray = true;
                        out.push(b'\\');
                    }
                }
                continue;
            }
            _ => {
                stray = true;
                out.push(b'\\');
                continue;
            }
        };
        out.push(simple);
        at += 1;
    }
    (out, stray)
}

/// The character after `\u` and how many bytes it took; an unpaired surrogate becomes U+FFFD.
fn unicode_escape(rest: &[u8]) -> Option<(char, usize)> {
    let first = hex4(rest)?;
    if (0xD800..0xDC00).contains(&first)
        && rest.get(4..6) == Some(b"\\u")
        && let Some(second) = hex4(&rest[6..])
        && (0xDC00..0xE000).contains(&second)
    {
        let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        return Some((char::from_u32(code)?, 10));
    }
    Some((char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 4))
}

fn hex4(bytes: &[u8]) -> Option<u32> {
    bytes.get(..4)?.iter().try_fold(0, |value, &b| Some(value * 16 + (b as char).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(raw: &str) -> String {
        decode(Raw { bytes: raw.as_bytes(), escaped: raw.contains('\\') }).text.into_owned()
    }

    #[test]
    fn escapes_resolve_and_stray_backslashes_stay() {
        assert_eq!(text(r#"a\"b\\c\nd"#), "a\"b\\c\nd");
        assert_eq!(text(r"\u00e9\ud83d\ude00"), "é😀");
        assert_eq!(text(r"C:\path\user"), r"C:\path\user");
        assert_eq!(text(r"\ud83d!"), "\u{fffd}!");
        assert_eq!(text(r"\u12"), r"\u12");
        assert_eq!(text("plain"), "plain");
    }

    #[test]
    fn invalid_utf8_is_marked() {
        let decoded = decode(Raw { bytes: b"a\xffb", escaped: false });
        assert_eq!(decoded.text, "a\u{fffd}b");
        assert!(decoded.invalid_utf8);
    }
}
