//! Builds columns from iterators.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array};
use busbound_trace::{Nanos, Timestamp};

pub(crate) fn numbers(of: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(of))
}

pub(crate) fn optional_numbers(of: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(of.collect::<Int64Array>())
}

/// Identifiers: values beyond the signed range keep their bits, so that joins still work.
pub(crate) fn ids(of: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    optional_numbers(of.map(|id| id.map(u64::cast_signed)))
}

pub(crate) fn sizes(of: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    optional_numbers(of.map(|bytes| Some(i64::try_from(bytes?).unwrap_or(i64::MAX))))
}

pub(crate) fn times(of: impl Iterator<Item = Timestamp>) -> ArrayRef {
    numbers(of.map(Timestamp::as_nanos))
}

pub(crate) fn durations(of: impl Iterator<Item = Nanos>) -> ArrayRef {
    numbers(of.map(Nanos::get))
}

pub(crate) fn indices(of: impl Iterator<Item = Option<i32>>) -> ArrayRef {
    Arc::new(of.collect::<Int32Array>())
}

pub(crate) fn steps(of: impl Iterator<Item = Option<u32>>) -> ArrayRef {
    indices(of.map(|step| i32::try_from(step?).ok()))
}

pub(crate) fn rates(of: impl Iterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(of.collect::<Float64Array>())
}

pub(crate) fn flags(of: impl Iterator<Item = bool>) -> ArrayRef {
    Arc::new(of.map(Some).collect::<BooleanArray>())
}
