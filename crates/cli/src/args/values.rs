//! How are values parsed that several flags take?

use busbound::Format;
use busbound::report::AnswerKind;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A format that every answer has.
pub(crate) fn general_format() -> impl TypedValueParser<Value = Format> {
    one_of(Format::ALL.iter().copied().filter(|format| format.is_general()))
}

/// A format of launch settings.
pub(crate) fn settings_format() -> impl TypedValueParser<Value = Format> {
    one_of(Format::only_for(AnswerKind::Advice))
}

fn one_of(formats: impl Iterator<Item = Format>) -> impl TypedValueParser<Value = Format> {
    let value = |format: Format| {
        let value = PossibleValue::new(format.name());
        if format.about().is_empty() { value } else { value.help(format.about()) }
    };
    let names: Vec<PossibleValue> = formats.map(value).collect();
    PossibleValuesParser::new(names).try_map(|name| Format::named(&name).ok_or("unknown format"))
}

/// `500MB`, `8GB`, `1.5GiB` or plain bytes.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 13] = [
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
        ("kB", 1e3),
        ("KB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("TB", 1e12),
        ("B", 1.0),
        ("K", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
    ];
    let found = UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = found.unwrap_or((text, 1.0));
    match number.trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value * factor < 1e18 => Ok((value * factor) as u64),
        _ => Err("give a size such as 500MB, 8GB or 2GiB".to_owned()),
    }
}

/// The same, or 0.
pub(crate) fn parse_size_or_zero(text: &str) -> Result<u64, String> {
    if text.trim() == "0" { Ok(0) } else { parse_size(text) }
}

/// Milliseconds: `31.8ms`, `0.0318s`, `850us` or plain milliseconds.
pub(crate) fn parse_milliseconds(text: &str) -> Result<f64, String> {
    const UNITS: [(&str, f64); 6] =
        [("ms", 1.0), ("us", 1e-3), ("µs", 1e-3), ("ns", 1e-6), ("min", 60e3), ("s", 1e3)];
    let text = text.trim();
    let found = UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = found.unwrap_or((text, 1.0));
    match number.trim().parse::<f64>() {
        Ok(value) if value > 0.0 && (value * factor).is_finite() => Ok(value * factor),
        _ => Err("give a time above zero such as 31.8ms, 0.0318s or 31.8 (milliseconds)".to_owned()),
    }
}

/// `7e9`, `7B`, `125M`.
pub(super) fn parse_count(text: &str) -> Result<f64, String> {
    let units = [("K", 1e3), ("M", 1e6), ("B", 1e9), ("T", 1e12)];
    let upper = text.trim().to_ascii_uppercase();
    let (number, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((upper.strip_suffix(unit)?, *factor)))
        .unwrap_or((&upper, 1.0));
    match number.trim().parse::<f64>() {
        Ok(value) if value > 0.0 && (value * factor).is_finite() => Ok(value * factor),
        _ => Err("give a number above zero such as 7e9, 7B or 125M".to_owned()),
    }
}

/// Bytes of one value.
pub(super) fn parse_dtype(text: &str) -> Result<f64, String> {
    const TYPES: [(&str, f64); 11] = [
        ("fp64", 8.0),
        ("fp32", 4.0),
        ("tf32", 4.0),
        ("bf16", 2.0),
        ("fp16", 2.0),
        ("fp8", 1.0),
        ("int8", 1.0),
        ("fp4", 0.5),
        ("int4", 0.5),
        ("float32", 4.0),
        ("bfloat16", 2.0),
    ];
    let lower = text.to_ascii_lowercase();
    let found = TYPES.iter().find(|(name, _)| *name == lower).map(|(_, bytes)| *bytes);
    found.ok_or_else(|| format!("give one of {}", TYPES.map(|(name, _)| name).join(", ")))
}

/// `95%` or `0.95`.
pub(super) fn parse_share(text: &str) -> Result<f64, String> {
    let (number, whole) = text.trim().strip_suffix('%').map_or((text.trim(), 1.0), |number| (number, 100.0));
    match number.trim().parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&(value / whole)) => Ok(value / whole),
        _ => Err("give a share such as 95% or 0.95".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("500MB"), Ok(500_000_000));
        assert_eq!(parse_size("8G"), Ok(8_000_000_000));
        assert_eq!(parse_size("1.5GiB"), Ok(1_610_612_736));
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!((parse_size_or_zero("0"), parse_size_or_zero("1kB")), (Ok(0), Ok(1000)));
        assert!(parse_size("0").is_err());
        for wrong in ["", "GB", "-1GB", "ten", "NaN", "1e30GB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_have_units_or_are_milliseconds() {
        for text in ["31.8ms", "31.8", "0.0318s", "31800us", " 31.8 ms "] {
            let ms = parse_milliseconds(text).unwrap();
            assert!((ms - 31.8).abs() < 1e-9, "{text}: {ms}");
        }
        for wrong in ["", "ms", "-1ms", "0", "ten", "31.8 m", "NaN", "inf", "1h"] {
            assert!(parse_milliseconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn counts_types_and_shares_are_parsed_as_people_write_them() {
        assert_eq!(parse_count("7e9"), Ok(7e9));
        assert_eq!(parse_count("7B"), Ok(7e9));
        assert_eq!(parse_count("125m"), Ok(125e6));
        assert_eq!(parse_dtype("FP16"), Ok(2.0));
        assert_eq!(parse_share("95%"), Ok(0.95));
        assert_eq!(parse_share("0.5"), Ok(0.5));
        for wrong in ["", "-7B", "x", "0"] {
            assert!(parse_count(wrong).is_err(), "{wrong}");
        }
        assert!(parse_dtype("fp12").unwrap_err().contains("bf16"));
        assert!(parse_share("120%").is_err());
    }
}
