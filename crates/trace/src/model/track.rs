//! Where did it happen? A thread of a process, or a stream of a device.

use crate::hash::HashMap;
use crate::model::names::{NameId, Names};

/// A process or thread as written in the trace: mostly numbers, sometimes text (`"Spans"`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Label {
    Number(i64),
    Text(NameId),
}

/// Where events are recorded. Events of one place are ordered in time; places are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    Thread {
        process: Label,
        thread: Label,
    },
    /// `stream` is −1 for what concerns the whole device, e.g. a device synchronization.
    Stream {
        device: i32,
        stream: i64,
    },
}

impl Place {
    /// The process of a thread.
    pub fn process(self) -> Option<Label> {
        match self {
            Self::Thread { process, .. } => Some(process),
            Self::Stream { .. } => None,
        }
    }
}

/// The id of a place, valid for the trace that returned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrackId(u32);

impl TrackId {
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

/// The distinct places of a trace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tracks {
    places: Vec<Place>,
    by_place: HashMap<Place, u32>,
}

impl Tracks {
    pub(crate) fn intern(&mut self, place: Place) -> TrackId {
        let next = self.places.len();
        let id = *self.by_place.entry(place).or_insert_with(|| {
            self.places.push(place);
            u32::try_from(next).unwrap_or(u32::MAX)
        });
        TrackId(id)
    }

    pub(crate) fn find(&self, place: Place) -> Option<TrackId> {
        self.by_place.get(&place).copied().map(TrackId)
    }

    pub(crate) fn get(&self, id: TrackId) -> Place {
        self.places[id.index()]
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (TrackId, Place)> + '_ {
        (0u32..).zip(&self.places).map(|(i, &place)| (TrackId(i), place))
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.places.capacity() * size_of::<Place>() + self.by_place.capacity() * (size_of::<Place>() + 5)
    }

    pub(crate) fn clear(&mut self) {
        self.places.clear();
        self.by_place.clear();
    }
}

impl From<i64> for Label {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<i32> for Label {
    fn from(number: i32) -> Self {
        Self::Number(number.into())
    }
}

impl From<u32> for Label {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl Label {
    /// The same label in another table of names.
    pub(crate) fn moved(self, names: &[NameId]) -> Self {
        match self {
            Self::Number(n) => Self::Number(n),
            Self::Text(id) => Self::Text(names[id.index()]),
        }
    }

    /// As text.
    pub fn display(self, names: &Names) -> String {
        match self {
            Self::Number(n) => n.to_string(),
            Self::Text(id) => names.get(id).to_owned(),
        }
    }
}

impl Place {
    pub(crate) fn moved(self, names: &[NameId]) -> Self {
        match self {
            Self::Thread { process, thread } => {
                Self::Thread { process: process.moved(names), thread: thread.moved(names) }
            }
            Self::Stream { .. } => self,
        }
    }
}
