//! Which number is this? Converts decimal microseconds to integer nanoseconds without going through a float.

/// Why a token is not a usable number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotUsable {
    /// NaN, Infinity, null, a word.
    NotANumber,
    /// Outside the range of the type.
    OutOfRange,
}

/// Converts microseconds in a token to nanoseconds. Rounds after three decimals.
pub(crate) fn micros_to_nanos(token: &[u8]) -> Result<i64, NotUsable> {
    match leading_micros(token) {
        Some((nanos, len)) if len == token.len() => Ok(nanos),
        _ => odd_micros(token),
    }
}

/// Kineto's usual form at the start of `bytes`: up to 16 digits, optionally followed by a point and up to three more.
/// Returns the nanoseconds and the length, or `None` for any other form.
#[inline]
pub(crate) fn leading_micros(bytes: &[u8]) -> Option<(i64, usize)> {
    let mut nanos: i64 = 0;
    let mut at = 0;
    while let Some(digit) = bytes.get(at).map(|b| b.wrapping_sub(b'0')).filter(|&digit| digit <= 9) {
        nanos = nanos * 10 + i64::from(digit);
        at += 1;
        // 16 digits of microseconds are 316 years: the nanoseconds still fit in 64 bits.
        if at > 16 {
            return None;
        }
    }
    if at == 0 || nanos > i64::MAX / 1000 - 1 {
        return None;
    }
    let mut decimals = 0;
    if bytes.get(at) == Some(&b'.') {
        at += 1;
        while let Some(digit) = bytes.get(at).map(|b| b.wrapping_sub(b'0')).filter(|&digit| digit <= 9) {
            if decimals == 3 {
                return None;
            }
            nanos = nanos * 10 + i64::from(digit);
            decimals += 1;
            at += 1;
        }
        if decimals == 0 {
            return None;
        }
    }
    // Anything but a delimiter (an exponent, a letter) means another form.
    if let Some(b) = bytes.get(at)
        && !matches!(b, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t')
    {
        return None;
    }
    const SCALE: [i64; 4] = [1000, 100, 10, 1];
    Some((nanos * SCALE[decimals], at))
}

/// Everything else: exponents, many digits, words.
#[cold]
fn odd_micros(token: &[u8]) -> Result<i64, NotUsable> {
    let text = std::str::from_utf8(token).map_err(|_| NotUsable::NotANumber)?.trim();
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| NotUsable::NotANumber)?),
        None => (text, 0),
    };
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    if digits().next().is_none() || !digits().all(|b| b.is_ascii_digit()) {
        return Err(NotUsable::NotANumber);
    }
    // Value = digits × 10^(exponent − fraction digits) µs; nanoseconds add three powers.
    // Use digits down to single nanoseconds; the next digit rounds.
    let keep = i64::try_from(whole.len()).unwrap_or(i64::MAX).saturating_add(i64::from(exponent) + 3);
    let mut value: i128 = 0;
    for (i, digit) in (0i64..).zip(digits().map(|b| i128::from(b - b'0'))) {
        if i == keep {
            value += i128::from(digit >= 5);
        }
        if i >= keep {
            break;
        }
        value = value * 10 + digit;
        if value > i128::from(i64::MAX) {
            return Err(NotUsable::OutOfRange);
        }
    }
    let given = i64::try_from(whole.len() + fraction.len()).unwrap_or(i64::MAX);
    for _ in given..keep {
        if value == 0 {
            break;
        }
        value *= 10;
        if value > i128::from(i64::MAX) {
            return Err(NotUsable::OutOfRange);
        }
    }
    let value = if negative { -value } else { value };
    i64::try_from(value).map_err(|_| NotUsable::OutOfRange)
}

/// An integer, or a float without a fraction.
#[inline]
pub(crate) fn integer(token: &[u8]) -> Option<i64> {
    let (negative, digits) = match token.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, token),
    };
    if digits.is_empty() || digits.len() > 18 {
        return odd_integer(token);
    }
    let mut value: i64 = 0;
    for &b in digits {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return odd_integer(token);
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if negative { -value } else { value })
}

#[cold]
fn odd_integer(token: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(token).ok()?.trim();
    if let Ok(value) = text.parse() {
        return Some(value);
    }
    let value: f64 = text.parse().ok()?;
    (value.fract() == 0.0 && value.abs() < 9.0e15).then_some(value as i64)
}

/// A count or id: negative values mean "none" in traces.
#[inline]
pub(crate) fn natural(token: &[u8]) -> Option<u64> {
    integer(token).and_then(|value| u64::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_become_exact_nanoseconds() {
        for (text, nanos) in [
            ("0", 0),
            ("45", 45_000),
            ("1669783687464181", 1_669_783_687_464_181_000),
            ("3850170244649.532", 3_850_170_244_649_532),
            ("0.8", 800),
            ("68.0", 68_000),
            ("3.25", 3_250),
            ("-5.001", -5_001),
            ("1.23456", 1_235),
            ("1.2344", 1_234),
            ("0.0004", 0),
            ("0.00051", 1),
            ("1e3", 1_000_000),
            ("1.5E-2", 15),
            ("+7", 7_000),
            ("1669783687464181.125", 1_669_783_687_464_181_125),
            // Found by fuzzing: the fourth decimal overflowed before it was rejected.
            ("9223372036854774.1234", 9_223_372_036_854_774_123),
        ] {
            assert_eq!(micros_to_nanos(text.as_bytes()), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn non_numbers_and_out_of_range_values_are_rejected() {
        for text in ["NaN", "Infinity", "-Infinity", "null", "", "abc", "1.2.3", "-", ".", "1e"] {
            assert_eq!(micros_to_nanos(text.as_bytes()), Err(NotUsable::NotANumber), "{text}");
        }
        for text in ["1e30", "99999999999999999999", "9223372036854775808", "1e2147483647"] {
            assert_eq!(micros_to_nanos(text.as_bytes()), Err(NotUsable::OutOfRange), "{text}");
        }
    }

    #[test]
    fn integers_in_every_notation() {
        assert_eq!(integer(b"-1"), Some(-1));
        assert_eq!(integer(b"12.0"), Some(12));
        assert_eq!(integer(b"12.5"), None);
        assert_eq!(integer(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(integer(b"0x1f"), None);
        assert_eq!(natural(b"-1"), None);
        assert_eq!(natural(b"4294967296"), Some(4_294_967_296));
    }
}
