//! Which text does an id stand for? Exports store every string once, in `StringIds`.

use crate::hash::HashMap;
use crate::model::kind::EventKind;
use crate::model::names::{NameId, Names};
use crate::symbols;

#[derive(Debug, Default)]
pub(super) struct Strings {
    texts: HashMap<i64, String>,
    bytes: usize,
    /// Results of earlier lookups, so that each name is shortened only once.
    shown: HashMap<i64, NameId>,
    calls: HashMap<i64, (EventKind, NameId)>,
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
        if let Some(known) = self.shown.get(&id) {
            return Some(*known);
        }
        let name = table.intern(&symbols::shown(self.texts.get(&id)?.as_bytes()));
        self.shown.insert(id, name);
        Some(name)
    }

    /// The kind of a call, and its name without the driver's version suffix.
    pub(super) fn call(&mut self, id: i64, table: &mut Names) -> Option<(EventKind, NameId)> {
        if let Some(known) = self.calls.get(&id) {
            return Some(*known);
        }
        let name = symbols::call(self.texts.get(&id)?);
        let kind = if is_drivers(name) { EventKind::DriverCall } else { EventKind::RuntimeCall };
        let call = (kind, table.intern(name));
        self.calls.insert(id, call);
        Some(call)
    }
}

/// `cuLaunchKernel`, but not `cudaLaunchKernel`.
fn is_drivers(name: &str) -> bool {
    name.strip_prefix("cu").is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
}
