//! When did it happen, and how long did it take? Integer nanoseconds in two types that cannot be mixed up.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// A point in time: nanoseconds on the trace's own clock.
///
/// Clocks of two traces are not aligned, so timestamps of different traces must never be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Timestamp(i64);

/// A length of time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Nanos(i64);

impl Timestamp {
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    pub const fn as_nanos(self) -> i64 {
        self.0
    }
}

impl Nanos {
    pub const ZERO: Self = Self(0);

    pub const fn new(nanos: i64) -> Self {
        Self(nanos)
    }

    pub const fn get(self) -> i64 {
        self.0
    }

    /// For products: a span of years times ten overflows 64 bits.
    pub fn wide(self) -> i128 {
        i128::from(self.0)
    }

    /// For display and rates only: arithmetic stays in integers.
    pub fn as_millis(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// For display and rates only: arithmetic stays in integers.
    pub fn as_micros(self) -> f64 {
        self.0 as f64 / 1e3
    }
}

// Always saturating: a timestamp near the end of the range comes from a damaged file, which must not crash the
// program.
impl Add<Nanos> for Timestamp {
    type Output = Self;
    fn add(self, rhs: Nanos) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl Sub for Timestamp {
    type Output = Nanos;
    fn sub(self, rhs: Self) -> Nanos {
        Nanos(self.0.saturating_sub(rhs.0))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}
