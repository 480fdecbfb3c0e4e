//! The names of pieces, each stored once, in printable form.

use busbound_trace::hash::HashMap;
use busbound_trace::{NameId, Names};

use crate::quantity::printable;

/// Longest name, in characters; the rest of a long template name adds nothing.
const LONGEST: usize = 300;

pub(super) struct DrawnNames<'a> {
    of_trace: &'a Names,
    /// By number in the trace, plus one; 0 if not drawn yet.
    known: Vec<u32>,
    own: HashMap<String, u32>,
    list: Vec<String>,
}

impl<'a> DrawnNames<'a> {
    pub(super) fn of(of_trace: &'a Names) -> Self {
        let list = vec![String::new()];
        Self { of_trace, known: vec![0; of_trace.iter().count()], own: HashMap::default(), list }
    }

    pub(super) fn event(&mut self, name: NameId) -> u32 {
        let known = self.known[name.index()];
        if known > 0 {
            return known - 1;
        }
        let number = self.push(shortened(&printable(self.of_trace.get(name))));
        self.known[name.index()] = number + 1;
        number
    }

    pub(super) fn own(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.own.get(text) {
            return number;
        }
        let number = self.push(text.to_owned());
        self.own.insert(text.to_owned(), number);
        number
    }

    fn push(&mut self, text: String) -> u32 {
        self.list.push(text);
        u32::try_from(self.list.len() - 1).unwrap_or(0)
    }

    pub(super) fn into_list(self) -> Vec<String> {
        self.list
    }
}

fn shortened(name: &str) -> String {
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}
