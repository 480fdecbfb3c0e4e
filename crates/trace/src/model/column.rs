//! Columns that take less memory than one value per event: most events have no value, or a small one.

use crate::model::time::Nanos;

/// A value that stands for "not recorded".
pub(crate) trait Absent: Copy + PartialEq {
    const ABSENT: Self;
}

impl Absent for u32 {
    const ABSENT: Self = Self::MAX;
}

impl Absent for u64 {
    const ABSENT: Self = Self::MAX;
}

/// A column that ends at the last event with a value: whole kinds of events have none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trailing<T> {
    values: Vec<T>,
}

impl<T: Absent> Trailing<T> {
    pub(crate) fn get(&self, row: usize) -> Option<T> {
        self.values.get(row).copied().filter(|value| *value != T::ABSENT)
    }

    /// Sets the value of a row.
    pub(crate) fn set(&mut self, row: usize, value: Option<T>) {
        match (self.values.get_mut(row), value) {
            (Some(slot), value) => *slot = value.unwrap_or(T::ABSENT),
            (None, Some(value)) => {
                self.values.resize(row, T::ABSENT);
                self.values.push(value);
            }
            (None, None) => {}
        }
    }

    /// Appends the values of another table, after this many rows of this one.
    pub(crate) fn append(&mut self, rows: usize, values: impl ExactSizeIterator<Item = T>) {
        if values.len() > 0 {
            self.values.resize(rows, T::ABSENT);
            self.values.extend(values);
        }
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        &self.values
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
    }

    pub(crate) fn shrink(&mut self) {
        self.values.shrink_to_fit();
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.values.capacity() * size_of::<T>()
    }
}

/// The durations of events. Almost all fit 32 bits of nanoseconds, which is 4.3 s.
#[derive(Debug, Clone, Default)]
pub(crate) struct Durations {
    /// `LONG` for those that do not fit.
    short: Vec<u32>,
    /// By row, in order.
    long: Vec<(u32, Nanos)>,
}

const LONG: u32 = u32::MAX;

impl Durations {
    pub(crate) fn push(&mut self, duration: Nanos) {
        let short = u32::try_from(duration.get()).unwrap_or(LONG);
        if short == LONG {
            self.long.push((u32::try_from(self.short.len()).unwrap_or(u32::MAX), duration));
        }
        self.short.push(short);
    }

    pub(crate) fn get(&self, row: usize) -> Nanos {
        match self.short[row] {
            LONG => self.long_one(row),
            short => Nanos::new(short.into()),
        }
    }

    #[cold]
    fn long_one(&self, row: usize) -> Nanos {
        let at = self.long.partition_point(|(long, _)| (*long as usize) < row);
        self.long[at].1
    }

    pub(crate) fn append(&mut self, other: &Self) {
        let rows = u32::try_from(self.short.len()).unwrap_or(u32::MAX);
        self.short.extend_from_slice(&other.short);
        self.long.extend(other.long.iter().map(|&(row, duration)| (row.saturating_add(rows), duration)));
    }

    pub(crate) fn reserve(&mut self, rows: usize) {
        self.short.reserve_exact(rows);
    }

    pub(crate) fn clear(&mut self) {
        self.short.clear();
        self.long.clear();
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.short.capacity() * size_of::<u32>() + self.long.capacity() * size_of::<(u32, Nanos)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_any_length_come_back_also_after_appending() {
        let values = [0, 7, i64::from(u32::MAX) - 1, i64::from(u32::MAX), 1 << 40, 3, -5];
        let mut one = Durations::default();
        values.iter().for_each(|&nanos| one.push(Nanos::new(nanos)));
        let mut all = one.clone();
        all.append(&one);
        let found: Vec<i64> = (0..2 * values.len()).map(|row| all.get(row).get()).collect();
        assert_eq!(found, [values, values].concat());
    }

    #[test]
    fn a_column_ends_at_the_last_value() {
        let mut column = Trailing::<u64>::default();
        column.set(0, None);
        column.set(2, Some(5));
        column.set(3, None);
        assert_eq!(column.as_slice(), [u64::MAX, u64::MAX, 5]);
        column.append(4, [7, u64::MAX].into_iter());
        let found: Vec<_> = (0..8).map(|row| column.get(row)).collect();
        assert_eq!(found, [None, None, Some(5), None, Some(7), None, None, None]);
        column.set(2, None);
        assert_eq!(column.get(2), None);
    }
}
