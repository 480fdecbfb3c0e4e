//! The answers people ask for, one module each: typed results that renderers show.

pub(crate) mod advice;
pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod diagnosis;
pub(crate) mod gate;
pub(crate) mod several;
pub(crate) mod survey;
pub(crate) mod whatif;
