//! What did `aten::copy_` ask for? Shapes, dtypes and the non_blocking flag of copy operators.
//!
//! In a trace without GPU events this is all there is to judge copies by.

use crate::model::names::NameId;
use crate::model::size::Bytes;

/// The recorded arguments of a copy operator (`record_shapes=True`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyOperator {
    /// Shape of the tensor copied, as the trace writes it, e.g. `[8, 256, 512]`.
    pub shape: NameId,
    /// Its elements; `None` where no shape was recorded.
    pub elements: Option<u64>,
    pub src_dtype: NameId,
    pub dst_dtype: NameId,
    pub non_blocking: Option<bool>,
}

/// The operators whose arguments are kept, and where their `non_blocking` argument stands.
///
/// `aten::to` has overloads; in each the flag is the first of the two trailing booleans.
pub(crate) fn non_blocking_position(operator: &[u8], arguments: usize) -> Option<usize> {
    match operator {
        // copy_(self, src, non_blocking)
        b"aten::copy_" => Some(2),
        // _to_copy(self, dtype, layout, device, pin_memory, non_blocking, memory_format)
        b"aten::_to_copy" => Some(5),
        b"aten::to" => match arguments {
            // to.dtype_layout(self, dtype, layout, device, pin_memory, non_blocking, copy, format)
            8 => Some(5),
            // to.device(self, device, dtype, non_blocking, copy, format)
            6 => Some(3),
            // to.dtype(self, dtype, non_blocking, copy, format), to.other(self, other, …)
            5 => Some(2),
            // to.prim_*(self, …, non_blocking, copy)
            3 | 4 => Some(arguments - 2),
            _ => None,
        },
        _ => None,
    }
}

pub(crate) fn is_copy_operator(name: &[u8]) -> bool {
    matches!(name, b"aten::copy_" | b"aten::to" | b"aten::_to_copy")
}

/// Bytes of one element of a dtype by the name Kineto gives it (C++ type names).
///
/// ```
/// use busbound_trace::element_size;
/// assert_eq!(element_size("c10::BFloat16"), Some(2));
/// assert_eq!(element_size("GenericList"), None);
/// ```
pub fn element_size(dtype: &str) -> Option<u64> {
    Some(match dtype {
        "bool"
        | "char"
        | "signed char"
        | "unsigned char"
        | "int8"
        | "uint8"
        | "Bool"
        | "Byte"
        | "Char"
        | "c10::Float8_e4m3fn"
        | "c10::Float8_e5m2"
        | "c10::Float8_e4m3fnuz"
        | "c10::Float8_e5m2fnuz"
        | "c10::Float8_e8m0fnu"
        | "c10::qint8"
        | "c10::quint8" => 1,
        "short" | "short int" | "unsigned short" | "int16" | "c10::Half" | "c10::BFloat16" | "Half"
        | "BFloat16" | "Short" => 2,
        "int"
        | "unsigned int"
        | "float"
        | "int32"
        | "float32"
        | "Float"
        | "Int"
        | "c10::qint32"
        | "c10::complex<c10::Half>" => 4,
        "long"
        | "long int"
        | "long long"
        | "unsigned long"
        | "double"
        | "int64"
        | "float64"
        | "Long"
        | "Double"
        | "c10::complex<float>" => 8,
        "c10::complex<double>" => 16,
        _ => return None,
    })
}

impl CopyOperator {
    /// Bytes read from the source, if its shape and dtype are known.
    pub fn bytes(&self, names: &crate::Names) -> Option<Bytes> {
        let size = element_size(names.get(self.src_dtype))?;
        self.elements?.checked_mul(size).map(Bytes::new)
    }
}
