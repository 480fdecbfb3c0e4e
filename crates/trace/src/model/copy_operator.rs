//! What did an operator like `aten::copy_` ask for? Shape, dtypes and the non_blocking flag.
//!
//! In a trace without GPU events, this is the only information about copies.

use crate::model::names::NameId;
use crate::model::size::Bytes;

/// The recorded arguments of a copy operator (`record_shapes=True`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyOperator {
    /// Shape of the tensor copied, as the trace writes it, e.g. `[8, 256, 512]`.
    pub shape: NameId,
    /// Its number of elements; `None` if no shape was recorded.
    pub elements: Option<u64>,
    /// Bytes read from the source, if its shape and dtype are known.
    pub bytes: Option<Bytes>,
    pub src_dtype: NameId,
    pub dst_dtype: NameId,
    pub non_blocking: Option<bool>,
}
