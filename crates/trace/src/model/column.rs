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

    pub(crate) fn reserve(&mut self, rows: usize) {
        self.values.reserve_exact(rows);
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

/// Optional numbers of 64 bits, of which mostly the lower 32 are used. Like [`Trailing`], but in half the memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ids {
    low: Trailing<u32>,
    /// The upper halves, up to the last number that does not fit the lower half or looks absent there.
    high: Vec<u32>,
}

impl Ids {
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<u64> {
        let low = *self.low.values.get(row)?;
        match self.high.get(row) {
            Some(&high) => Some(u64::from(high) << 32 | u64::from(low)).filter(|id| *id != u64::ABSENT),
            None => Some(u64::from(low)).filter(|_| low != u32::ABSENT),
        }
    }

    fn high_half(&self, row: usize) -> u32 {
        let by_low = || if self.low.get(row).is_some() { 0 } else { u32::ABSENT };
        self.high.get(row).copied().unwrap_or_else(by_low)
    }

    /// Sets the number of a row. The largest one stands for none.
    pub(crate) fn set(&mut self, row: usize, id: Option<u64>) {
        let id = id.unwrap_or(u64::ABSENT);
        let (low, high) = (id as u32, (id >> 32) as u32);
        self.low.set(row, Some(low).filter(|_| id != u64::ABSENT));
        if id != u64::ABSENT && (high > 0 || low == u32::ABSENT) {
            self.fill_high(row + 1);
        }
        if let Some(slot) = self.high.get_mut(row) {
            *slot = high;
        }
    }

    fn fill_high(&mut self, rows: usize) {
        for row in self.high.len()..rows {
            self.high.push(self.high_half(row));
        }
    }

    /// Appends the numbers of another table, after this many rows of this one.
    pub(crate) fn append(&mut self, rows: usize, other: &Self) {
        if !other.high.is_empty() {
            self.fill_high(rows);
        }
        self.low.append(rows, other.low.values.iter().copied());
        self.high.extend_from_slice(&other.high);
    }

    pub(crate) fn reserve(&mut self, rows: usize) {
        self.low.reserve(rows);
    }

    pub(crate) fn clear(&mut self) {
        self.low.clear();
        self.high.clear();
    }

    pub(crate) fn shrink(&mut self) {
        self.low.shrink();
        self.high.shrink_to_fit();
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.low.heap_bytes() + self.high.capacity() * size_of::<u32>()
    }
}

/// Numbers of 32 bits, of which mostly the lower 16 are used.
#[derive(Debug, Clone, Default)]
pub(crate) struct Numbers {
    low: Vec<u16>,
    /// Up to the last number that has an upper half.
    high: Vec<u16>,
}

impl Numbers {
    #[inline]
    pub(crate) fn get(&self, row: usize) -> u32 {
        let high = self.high.get(row).copied().unwrap_or(0);
        u32::from(high) << 16 | u32::from(self.low[row])
    }

    #[inline]
    pub(crate) fn push(&mut self, number: u32) {
        self.low.push(number as u16);
        if number >> 16 != 0 {
            self.set_high(self.low.len() - 1, (number >> 16) as u16);
        }
    }

    pub(crate) fn set(&mut self, row: usize, number: u32) {
        self.low[row] = number as u16;
        self.set_high(row, (number >> 16) as u16);
    }

    fn set_high(&mut self, row: usize, high: u16) {
        if self.high.len() <= row && high != 0 {
            self.high.resize(row + 1, 0);
        }
        if let Some(slot) = self.high.get_mut(row) {
            *slot = high;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.low.len()).map(|row| self.get(row))
    }

    pub(crate) fn extend(&mut self, numbers: impl Iterator<Item = u32>) {
        numbers.for_each(|number| self.push(number));
    }

    pub(crate) fn reserve(&mut self, rows: usize) {
        self.low.reserve_exact(rows);
    }

    pub(crate) fn clear(&mut self) {
        self.low.clear();
        self.high.clear();
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        (self.low.capacity() + self.high.capacity()) * size_of::<u16>()
    }
}

/// Numbers of which mostly all fit eight bits, like those of tracks.
#[derive(Debug, Clone)]
pub(crate) enum SmallNumbers {
    Narrow(Vec<u8>),
    /// Since the first number that did not fit.
    Wide(Numbers),
}

impl Default for SmallNumbers {
    fn default() -> Self {
        Self::Narrow(Vec::new())
    }
}

impl SmallNumbers {
    #[inline]
    pub(crate) fn get(&self, row: usize) -> u32 {
        match self {
            Self::Narrow(numbers) => numbers[row].into(),
            Self::Wide(numbers) => numbers.get(row),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, number: u32) {
        match (&mut *self, u8::try_from(number)) {
            (Self::Narrow(numbers), Ok(number)) => numbers.push(number),
            (Self::Wide(numbers), _) => numbers.push(number),
            (Self::Narrow(numbers), Err(_)) => *self = Self::Wide(widened(numbers, number)),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len()).map(|row| self.get(row))
    }

    fn len(&self) -> usize {
        match self {
            Self::Narrow(numbers) => numbers.len(),
            Self::Wide(numbers) => numbers.low.len(),
        }
    }

    pub(crate) fn extend(&mut self, numbers: impl Iterator<Item = u32>) {
        numbers.for_each(|number| self.push(number));
    }

    pub(crate) fn reserve(&mut self, rows: usize) {
        match self {
            Self::Narrow(numbers) => numbers.reserve_exact(rows),
            Self::Wide(numbers) => numbers.reserve(rows),
        }
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Self::Narrow(numbers) => numbers.clear(),
            Self::Wide(numbers) => numbers.clear(),
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Narrow(numbers) => numbers.capacity(),
            Self::Wide(numbers) => numbers.heap_bytes(),
        }
    }
}

/// The same numbers with room for larger ones, and the first of those.
#[cold]
fn widened(narrow: &Vec<u8>, number: u32) -> Numbers {
    let mut wide = Numbers::default();
    wide.reserve(narrow.capacity().max(narrow.len() + 1));
    wide.extend(narrow.iter().map(|number| u32::from(*number)).chain([number]));
    wide
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

    #[inline]
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
    fn ids_and_numbers_of_any_size_come_back() {
        let ids =
            [Some(0), None, Some(7), Some(u64::from(u32::MAX)), Some(1 << 32), Some(u64::MAX - 1), None];
        let mut one = Ids::default();
        ids.iter().enumerate().for_each(|(row, id)| one.set(row, *id));
        let mut all = one.clone();
        all.append(ids.len(), &one);
        let found: Vec<_> = (0..2 * ids.len()).map(|row| all.get(row)).collect();
        assert_eq!(found, [ids, ids].concat());
        all.set(4, Some(3));
        all.set(5, None);
        assert_eq!((all.get(4), all.get(5)), (Some(3), None));

        let mut numbers = Numbers::default();
        numbers.extend([3, 1 << 16, u32::MAX, 9].into_iter());
        numbers.set(0, 1 << 20);
        numbers.set(1, 5);
        assert_eq!(numbers.iter().collect::<Vec<_>>(), [1 << 20, 5, u32::MAX, 9]);
    }

    #[test]
    fn small_numbers_become_wide_when_one_does_not_fit() {
        let mut numbers = SmallNumbers::default();
        numbers.extend([3, 255].into_iter());
        assert!(matches!(numbers, SmallNumbers::Narrow(_)));
        numbers.extend([256, 7, 1 << 20].into_iter());
        assert_eq!(numbers.iter().collect::<Vec<_>>(), [3, 255, 256, 7, 1 << 20]);
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
