//! Which value has this share of the others below it? Defined once, so that every median is computed the same way.

/// The value at a share (0 to 1) of the sorted values, interpolated between the two nearest; `None` if there are no
/// values. Reorders the values, which is faster than sorting them.
///
/// ```
/// use busbound_machine::quantile;
/// assert_eq!(quantile(&mut [4.0, 1.0, 2.0], 0.9), Some(3.6));
/// assert_eq!(quantile(&mut [], 0.5), None);
/// ```
pub fn quantile(values: &mut [f64], share: f64) -> Option<f64> {
    let at = share.clamp(0.0, 1.0) * values.len().checked_sub(1)? as f64;
    let (_, &mut low, above) = values.select_nth_unstable_by(at.floor() as usize, f64::total_cmp);
    match above.iter().copied().min_by(f64::total_cmp) {
        Some(high) if at.fract() > 0.0 => Some(low + (high - low) * at.fract()),
        _ => Some(low),
    }
}

/// The median; for an even count the mean of the two central values. `None` if there are no values.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    quantile(&mut values.into_iter().collect::<Vec<f64>>(), 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_interpolated_between_the_two_nearest_values() {
        assert_eq!(median([2.0, 1.0]), Some(1.5));
        assert_eq!(median([9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([5.0]), Some(5.0));
        assert_eq!(median([]), None);
        let of = |share| quantile(&mut [3.0, 1.0, 4.0, 2.0], share);
        assert_eq!([0.0, 0.5, 1.0].map(of), [Some(1.0), Some(2.5), Some(4.0)]);
    }
}
