//! The macro that declares figures: one entry each, in the order of display.

/// Declares [`FigureId`](super::FigureId) and what is known about each figure.
macro_rules! catalog {
    ($($id:ident = $name:literal {
        label: $label:literal, unit: $unit:ident, better: $better:ident,
        summary: $summary:literal,
        definition: $definition:literal,
        of: $of:expr,
    })*) => {
        /// A figure of a run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FigureId {
            $(#[doc = $definition] $id,)*
        }

        impl FigureId {
            /// Every figure, in display order.
            pub const ALL: &'static [Self] = &[$(Self::$id,)*];

            pub(super) fn entry(self) -> &'static Definition {
                static ENTRIES: &[Definition] = &[$(Definition {
                    name: $name,
                    label: $label,
                    unit: FigureUnit::$unit,
                    better: Better::$better,
                    summary: $summary,
                    definition: $definition,
                    of: $of,
                },)*];
                &ENTRIES[self as usize]
            }
        }
    };
}

pub(super) use catalog;
