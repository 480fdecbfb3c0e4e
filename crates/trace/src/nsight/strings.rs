//! Which text stands behind a number? Exports keep every string once, in `StringIds`.

use hashbrown::HashMap;

use crate::model::names::{NameId, Names};
use crate::symbols;

#[derive(Debug, Default)]
pub(super) struct Strings {
    texts: HashMap<i64, String>,
    bytes: usize,
    /// What has been asked for before, so that a name is shortened once.
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

    /// As in the source: mangled names are taken apart.
    pub(super) fn name(&mut self, id: i64, table: &mut Names) -> Option<NameId> {
        let text = self.texts.get(&id)?;
        Some(*self.shown.entry(id).or_insert_with(|| table.intern(&symbols::shown(text.as_bytes()))))
    }

    /// Without the version that the driver knows a call by.
    pub(super) fn call(&mut self, id: i64, table: &mut Names) -> Option<NameId> {
        let text = self.texts.get(&id)?;
        Some(*self.calls.entry(id).or_insert_with(|| table.intern(symbols::call(text))))
    }
}
