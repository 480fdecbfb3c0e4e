//! Which strings occur? Each is stored once; events refer to it by id.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// The id of an interned string, valid for the [`Names`] that returned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NameId(u32);

impl NameId {
    /// The empty string has the same id in every table.
    pub const EMPTY: Self = Self(0);

    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn number(self) -> u32 {
        self.0
    }

    #[inline]
    pub(crate) fn of_number(number: u32) -> Self {
        Self(number)
    }
}

/// An append-only table of distinct strings.
#[derive(Clone)]
pub struct Names {
    text: String,
    /// `ends[i]` is where string `i` ends in `text`; it begins where its predecessor ends.
    ends: Vec<usize>,
    by_hash: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Default for Names {
    fn default() -> Self {
        let mut names = Self {
            text: String::new(),
            ends: Vec::new(),
            by_hash: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        };
        names.intern("");
        names
    }
}

impl Names {
    pub fn get(&self, id: NameId) -> &str {
        slice_of(&self.text, &self.ends, id.index())
    }

    /// The id of a string that is already in the table.
    pub fn find(&self, text: &str) -> Option<NameId> {
        self.find_bytes(text.as_bytes())
    }

    /// Like [`find`](Self::find), for bytes that may not be valid text.
    pub(crate) fn find_bytes(&self, bytes: &[u8]) -> Option<NameId> {
        let hash = self.hasher.hash_one(bytes);
        self.by_hash
            .find(hash, |&i| slice_of(&self.text, &self.ends, i as usize).as_bytes() == bytes)
            .map(|&i| NameId(i))
    }

    pub fn intern(&mut self, text: &str) -> NameId {
        let Self { text: all, ends, by_hash, hasher } = self;
        let hash = hasher.hash_one(text.as_bytes());
        if let Some(&i) =
            by_hash.find(hash, |&i| slice_of(all, ends, i as usize).as_bytes() == text.as_bytes())
        {
            return NameId(i);
        }
        // Four billion distinct names do not fit into the reader's memory limit.
        let id = u32::try_from(ends.len()).unwrap_or(u32::MAX);
        all.push_str(text);
        ends.push(all.len());
        by_hash.insert_unique(hash, id, |&i| hasher.hash_one(slice_of(all, ends, i as usize).as_bytes()));
        NameId(id)
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).map(|i| slice_of(&self.text, &self.ends, i))
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * 8 + self.by_hash.capacity() * 5
    }

    /// Clears the table but keeps its memory, for the next segment.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.by_hash.clear();
        self.intern("");
    }
}

fn slice_of<'a>(text: &'a str, ends: &[usize], index: usize) -> &'a str {
    let from = if index == 0 { 0 } else { ends[index - 1] };
    &text[from..ends[index]]
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_has_one_id_and_the_empty_string_has_id_zero() {
        let mut names = Names::default();
        let a = names.intern("aten::mm");
        let b = names.intern("aten::add");
        assert_eq!(names.intern("aten::mm"), a);
        assert_ne!(a, b);
        assert_eq!(names.get(a), "aten::mm");
        assert_eq!(names.intern(""), NameId::EMPTY);
        assert_eq!(names.find("aten::add"), Some(b));
        assert_eq!(names.find("aten::div"), None);
        assert_eq!(names.len(), 3);
    }
}
