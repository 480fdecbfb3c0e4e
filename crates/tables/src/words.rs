//! Which distinct strings does a column have? Each is stored once and shared by all batches.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use arrow_schema::ArrowError;
use busbound_trace::Trace;
use serde::Serialize;

/// The distinct strings of a column, by the index of what they stand for: a name, a place, an enum value.
#[derive(Debug)]
pub(crate) struct Words {
    keys: Vec<Option<i32>>,
    words: Arc<StringArray>,
}

impl Words {
    /// The string for each index, in order.
    pub(crate) fn of<'w>(called: impl IntoIterator<Item = Option<&'w str>>) -> Self {
        let mut known: HashMap<&str, i32> = HashMap::new();
        let mut words = Vec::new();
        let mut key = |word: &'w str| {
            *known.entry(word).or_insert_with(|| {
                words.push(word);
                i32::try_from(words.len() - 1).unwrap_or(i32::MAX)
            })
        };
        let keys = called.into_iter().map(|word| word.map(&mut key)).collect();
        Self { keys, words: Arc::new(StringArray::from(words)) }
    }

    /// For an enum: all values in order, named as in JSON.
    pub(crate) fn of_values<T: Serialize>(values: &[T]) -> Self {
        let word = |value: &T| match serde_json::to_value(value) {
            Ok(serde_json::Value::String(word)) => Some(word),
            _ => None,
        };
        let words: Vec<Option<String>> = values.iter().map(word).collect();
        Self::of(words.iter().map(Option::as_deref))
    }

    /// For names of a trace: only those that are used.
    pub(crate) fn of_names(trace: &Trace, used: impl Iterator<Item = usize>) -> Self {
        let mut is_used = vec![false; trace.names().len()];
        used.for_each(|name| is_used[name] = true);
        Self::of(trace.names().iter().zip(is_used).map(|(name, is_used)| is_used.then_some(name)))
    }

    pub(crate) fn column(&self, of: impl Iterator<Item = Option<usize>>) -> Result<ArrayRef, ArrowError> {
        let keys: Int32Array = of.map(|number| self.keys[number?]).collect();
        let words: ArrayRef = Arc::<StringArray>::clone(&self.words);
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, words)?))
    }
}
