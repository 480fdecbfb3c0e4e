//! Which text does an id stand for? Exports store every string once, in `StringIds`.

use crate::hash::HashMap;
use crate::model::names::{NameId, Names};
use crate::symbols;

#[derive(Debug, Default)]
pub(super) struct Strings {
    texts: HashMap<i64, String>,
    bytes: usize,
    /// Results of earlier lookups, so that each name is shortened only once.
    shown: HashMap<i64, NameId>,
    calls: HashMap<i64, NameId>,
}

impl Strings {
    pub(super) fn add(&mut self, id: i64, text: String) {
        self.bytes += text.capacity() + 64;
        self.texts.insert(id, text);
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn get(&self, id: i64) -> Option<&str> {
        self.texts.get(&id).map(String::as_str)
    }

    /// As in the source: mangled names are demangled.
    pub(super) fn name(&mut self, id: i64, table: &mut Names) -> Option<NameId> {
        let text = self.texts.get(&id)?;
        Some(*self.shown.entry(id).or_insert_with(|| table.intern(&symbols::shown(text.as_bytes()))))
    }

    /// Without the driver's version suffix of a call.
    pub(super) fn call(&mut self, id: i64, table: &mut Names) -> Option<NameId> {
        let text = self.texts.get(&id)?;
        Some(*self.calls.entry(id).or_insert_with(|| table.intern(symbols::call(text))))
    }
}
