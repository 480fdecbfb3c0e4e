//! How many bytes must an operator read? Only for operators that do little with each byte: on the GPU, the memory that they read bounds
//! them, and the rate of their kernels says which memory that is.

use crate::kineto::list::{elements, items, unquoted};
use crate::kineto::names::element_size;
use crate::kineto::number::natural;
use crate::model::size::Bytes;

/// A matrix product with at most this many rows does little with each weight.
const FEW_ROWS: u64 = 32;
/// Bytes of a complex number in double precision.
const LARGEST_ELEMENT: u64 = 16;
/// Fewer bytes take no longer than the launch of their kernel.
const FEWEST: u64 = 1 << 20;

/// Operators that are kept with what they read. Those that only call others are not among them.
pub(super) fn is_bound_by_memory(name: &[u8]) -> bool {
    let Some(name) = name.strip_prefix(b"aten::") else { return false };
    // By length first: every operator is asked about, and most match none.
    match name.len() {
        3 => matches!(name, b"add" | b"mul" | b"sub" | b"div" | b"bmm"),
        4 => matches!(name, b"add_" | b"mul_" | b"sub_" | b"div_"),
        2 | 5 | 7 => is_product(name),
        _ => false,
    }
}

/// Products whose last two matrices are multiplied, by the name without its namespace.
fn is_product(name: &[u8]) -> bool {
    matches!(name, b"mm" | b"addmm" | b"bmm" | b"baddbmm" | b"mv" | b"addmv")
}

/// Bytes of all operands; `None` for small ones, and for products of many rows.
pub(super) fn operand_bytes(name: &[u8], dims: &[u8], types: &[u8]) -> Option<Bytes> {
    if elements_at_most(dims).saturating_mul(LARGEST_ELEMENT) < FEWEST {
        return None;
    }
    let shapes: Vec<&[u8]> = items(dims).collect();
    let is_product = name.strip_prefix(b"aten::").is_some_and(is_product);
    if is_product && rows(&shapes)? > FEW_ROWS {
        return None;
    }
    let mut all = 0u64;
    for (shape, dtype) in shapes.iter().zip(items(types)) {
        // Numbers and lists are no tensors.
        let Some(size) = element_size(unquoted(dtype).bytes) else { continue };
        all = all.saturating_add(elements(shape)?.checked_mul(size)?);
    }
    (all >= FEWEST).then_some(Bytes::new(all))
}

/// The elements of all shapes, without a look at how the list is nested: quick, because most operands are small.
fn elements_at_most(dims: &[u8]) -> u64 {
    let (mut all, mut product, mut side, mut is_shape) = (0_u64, 1_u64, None, false);
    for &byte in dims {
        match byte {
            b'0'..=b'9' => {
                let digit = u64::from(byte - b'0');
                side = Some(side.unwrap_or(0_u64).saturating_mul(10).saturating_add(digit));
            }
            b',' | b']' => {
                if let Some(side) = side.take() {
                    (product, is_shape) = (product.saturating_mul(side), true);
                }
                if byte == b']' && is_shape {
                    all = all.saturating_add(product);
                    (product, is_shape) = (1, false);
                }
            }
            _ => {}
        }
    }
    all
}

/// How often each weight of a product is used: the smaller outer side of its two matrices. A vector uses each once.
fn rows(shapes: &[&[u8]]) -> Option<u64> {
    let sides = |shape: &[u8]| items(shape).map(natural).collect::<Option<Vec<u64>>>();
    // Scalars such as `beta` come after the tensors, with empty shapes.
    let matrices: Vec<Vec<u64>> =
        shapes.iter().filter_map(|shape| sides(shape)).filter(|sides| !sides.is_empty()).collect();
    let [.., left, right] = matrices.as_slice() else { return None };
    match (left.as_slice(), right.as_slice()) {
        ([.., rows, _], [.., _, columns]) => Some(*rows.min(columns)),
        _ => Some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(name: &str, dims: &str, types: &str) -> Option<u64> {
        operand_bytes(name.as_bytes(), dims.as_bytes(), types.as_bytes()).map(Bytes::get)
    }

    #[test]
    fn products_of_few_rows_read_their_weights_once() {
        let half = r#"["c10::BFloat16", "c10::BFloat16"]"#;
        assert_eq!(bytes("aten::mm", "[[1, 4096], [4096, 4096]]", half), Some(2 * 4096 * 4097));
        assert_eq!(bytes("aten::mm", "[[4096, 4096], [4096, 8]]", half), Some(2 * 4096 * (4096 + 8)));
        assert_eq!(bytes("aten::mv", "[[4096, 4096], [4096]]", half), Some(2 * 4096 * 4097));
        let with_bias = r#"["float", "float", "float", "Scalar", "Scalar", ""]"#;
        let dims = "[[1024], [4, 1024], [1024, 1024], [], [], []]";
        assert_eq!(bytes("aten::addmm", dims, with_bias), Some(4 * (1024 + 4 * 1024 + 1024 * 1024)));
        // Many rows: the multiplications take longer than reading.
        assert_eq!(bytes("aten::mm", "[[512, 4096], [4096, 4096]]", half), None);
    }

    #[test]
    fn element_wise_operators_read_all_of_their_operands() {
        let types = r#"["float", "float", "Scalar"]"#;
        assert_eq!(bytes("aten::add", "[[1024, 1024], [1024, 1024], []]", types), Some(8 << 20));
        assert_eq!(bytes("aten::add", "[[1024], [1024], []]", types), None);
        assert!(is_bound_by_memory(b"aten::add_") && !is_bound_by_memory(b"aten::matmul"));
    }

    #[test]
    fn all_elements_are_counted_before_anything_is_parsed() {
        for (dims, all) in [
            ("[[1024, 1024], [1024, 1024], []]", 2 << 20),
            ("[[64,64],[4096]]", 2 * 4096),
            ("[[], [], []]", 0),
            ("[[99999999999999999999, 9], [2]]", u64::MAX),
            ("", 0),
        ] {
            assert_eq!(elements_at_most(dims.as_bytes()), all, "{dims}");
        }
    }

    #[test]
    fn damaged_shapes_have_no_size() {
        for dims in ["[]", "[[-1, 4096], [4096, 4096]]", "[[1, 4096], 7]", "{}", ""] {
            assert_eq!(bytes("aten::mm", dims, r#"["float", "float"]"#), None, "{dims}");
        }
    }
}
