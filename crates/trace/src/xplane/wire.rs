//! Which fields does a protobuf message have? Only the part of the wire format that a profile needs.

/// One field of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Number(u64),
    Double(f64),
    /// Text, bytes or a message.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(super) fn number(self) -> u64 {
        if let Self::Number(number) = self { number } else { 0 }
    }

    /// Negative numbers are written as 64 bits.
    pub(super) fn signed(self) -> i64 {
        self.number().cast_signed()
    }

    pub(super) fn bytes(self) -> &'a [u8] {
        if let Self::Bytes(bytes) = self { bytes } else { &[] }
    }

    /// Empty if it is not text.
    pub(super) fn text(self) -> &'a str {
        std::str::from_utf8(self.bytes()).unwrap_or_default()
    }
}

/// The fields of a message, by number, up to its end or to the first damage.
#[derive(Debug, Clone)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    damaged: bool,
}

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self { rest: message, damaged: false }
    }

    /// Whether the message ended inside a field, or has a field of unknown type.
    pub(super) fn are_damaged(&self) -> bool {
        self.damaged
    }

    fn field(&mut self) -> Option<(u64, Value<'a>)> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Double(f64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            // Profiles have no 32-bit fields.
            5 => {
                self.take(4)?;
                Value::Number(0)
            }
            _ => return None,
        };
        Some((key >> 3, value))
    }

    fn varint(&mut self) -> Option<u64> {
        let (number, length) = varint(self.rest)?;
        self.take(length)?;
        Some(number)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() || self.damaged {
            return None;
        }
        let field = self.field();
        self.damaged = field.is_none();
        field
    }
}

/// A varint (seven bits per byte), and the bytes it takes.
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0u64;
    for (at, &byte) in bytes.iter().take(10).enumerate() {
        number |= u64::from(byte & 0x7f).checked_shl(7 * u32::try_from(at).ok()?)?;
        if byte < 0x80 {
            return Some((number, at + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_end_at_the_first_damage() {
        // 1: 150, 2: "ab", then a text that is longer than the message.
        let message = b"\x08\x96\x01\x12\x02ab\x1a\x05x";
        let mut fields = Fields::of(message);
        assert_eq!(fields.next(), Some((1, Value::Number(150))));
        assert_eq!(fields.next().map(|(number, value)| (number, value.text())), Some((2, "ab")));
        assert!(!fields.are_damaged());
        assert_eq!(fields.next(), None);
        assert!(fields.are_damaged());
    }

    #[test]
    fn numbers_without_an_end_are_damage() {
        assert_eq!(varint(&[0xff; 12]), None);
        assert_eq!(varint(&[]), None);
        assert_eq!(
            varint(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
            Some((u64::MAX, 10))
        );
    }
}
