//! What is in a list of an event's arguments: shapes, dtypes, inputs.

use crate::kineto::cursor::{Cursor, Raw};
use crate::kineto::number::natural;

/// The elements of a JSON array that has been validated already.
pub(super) fn items(array: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut cursor = Cursor::at(array, 0);
    let mut open = cursor.peek() == Some(b'[');
    cursor.advance();
    std::iter::from_fn(move || {
        while open {
            match cursor.next_token() {
                Ok(b',') => cursor.advance(),
                Ok(b']') | Err(_) => open = false,
                Ok(_) => {
                    let item = cursor.skip_value().ok();
                    open = item.is_some();
                    return item;
                }
            }
        }
        None
    })
}

pub(super) fn unquoted(token: &[u8]) -> Raw<'_> {
    let bytes = token.strip_prefix(b"\"").and_then(|t| t.strip_suffix(b"\"")).unwrap_or(token);
    Raw { bytes, escaped: bytes.contains(&b'\\') }
}

/// Product of the sides of `[8, 256, 512]`. A scalar tensor `[]` has one element.
pub(super) fn elements(shape: &[u8]) -> Option<u64> {
    if !shape.starts_with(b"[") {
        return None;
    }
    items(shape).try_fold(1u64, |product, side| product.checked_mul(natural(side)?))
}
