//! How many bytes must an operator read? Only for operators that do little with each byte: on the GPU, the memory that they read bounds
//! them, and the rate of their kernels says which memory that is.

use crate::kineto::list::{items, unquoted};
use crate::kineto::names::element_size;
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
    if dims.iter().filter(|byte| byte.is_ascii_digit()).count() <= DIGITS_OF_SMALL {
        return None;
    }
    let shapes = Shapes::of(dims)?;
    if shapes.all_elements().saturating_mul(LARGEST_ELEMENT) < FEWEST {
        return None;
    }
    let is_product = name.strip_prefix(b"aten::").is_some_and(is_product);
    if is_product && shapes.rows()? > FEW_ROWS {
        return None;
    }
    let mut all = 0u64;
    for (elements, dtype) in shapes.elements().iter().zip(items(types)) {
        // Numbers and lists are no tensors.
        let Some(size) = element_size(unquoted(dtype).bytes) else { continue };
        all = all.saturating_add(elements.checked_mul(size)?);
    }
    (all >= FEWEST).then_some(Bytes::new(all))
}

/// Shapes of so few digits in total have fewer elements than [`FEWEST`] bytes are.
const DIGITS_OF_SMALL: usize = 4;
/// Operators that are kept have at most this many operands.
const MOST_OPERANDS: usize = 8;
/// Elements of what is no shape: no size of an element makes bytes of them.
const UNKNOWN: u64 = u64::MAX;
/// No side of a tensor is as long; longer numbers are damage.
const LONGEST_SIDE: u64 = 1 << 50;

/// The last two sides of a tensor, of `sides`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tensor {
    sides: usize,
    last: [u64; 2],
}

/// What counts of the shapes of all operands.
#[derive(Debug)]
struct Shapes {
    /// Elements of each, [`UNKNOWN`] for what is no shape. A scalar tensor `[]` has one.
    elements: [u64; MOST_OPERANDS],
    count: usize,
    /// The last two that have sides.
    tensors: [Tensor; 2],
}

impl Shapes {
    /// Reads `[[4, 1024], [1024, 1024], []]` in one pass, without a list: every operator of these has one.
    fn of(dims: &[u8]) -> Option<Self> {
        const NONE: Tensor = Tensor { sides: 0, last: [0; 2] };
        let mut found = Self { elements: [0; MOST_OPERANDS], count: 0, tensors: [NONE; 2] };
        let (mut depth, mut elements, mut tensor, mut side) = (0_usize, 1, NONE, None);
        for &byte in dims {
            match byte {
                b'0'..=b'9' => {
                    let digit = u64::from(byte - b'0');
                    side = Some(side.unwrap_or(0_u64).saturating_mul(10).saturating_add(digit));
                }
                b'[' => {
                    depth += 1;
                    (elements, tensor) = (if depth == 2 { 1 } else { UNKNOWN }, NONE);
                }
                b',' | b']' => {
                    match (depth, side.take()) {
                        (2, Some(side)) => {
                            elements = product(elements, side);
                            tensor = Tensor { sides: tensor.sides + 1, last: [tensor.last[1], side] };
                        }
                        // A number in place of a shape.
                        (1, Some(_)) => found.add(UNKNOWN, NONE)?,
                        _ => {}
                    }
                    if byte == b']' {
                        if depth == 2 {
                            found.add(elements, tensor)?;
                        }
                        depth = depth.checked_sub(1)?;
                    }
                }
                b' ' => {}
                // A sign, a fraction or a word.
                _ if depth > 1 => elements = UNKNOWN,
                _ => return None,
            }
        }
        (depth == 0).then_some(found)
    }

    fn add(&mut self, elements: u64, tensor: Tensor) -> Option<()> {
        *self.elements.get_mut(self.count)? = elements;
        self.count += 1;
        if elements != UNKNOWN && tensor.sides > 0 {
            self.tensors = [self.tensors[1], tensor];
        }
        Some(())
    }

    fn elements(&self) -> &[u64] {
        &self.elements[..self.count]
    }

    fn all_elements(&self) -> u64 {
        self.elements()
            .iter()
            .filter(|elements| **elements != UNKNOWN)
            .fold(0, |all, n| all.saturating_add(*n))
    }

    /// How often each weight of a product is used: the smaller outer side of its two matrices. A vector uses each once.
    fn rows(&self) -> Option<u64> {
        // Scalars such as `beta` come after the tensors, with empty shapes.
        let [left, right] = self.tensors;
        let is_matrix = |tensor: Tensor| tensor.sides > 1;
        let rows = if is_matrix(left) && is_matrix(right) { left.last[0].min(right.last[1]) } else { 1 };
        (left.sides > 0).then_some(rows)
    }
}

/// [`UNKNOWN`] stays so, and a product too large for any tensor becomes it.
fn product(elements: u64, side: u64) -> u64 {
    if elements == UNKNOWN || side >= LONGEST_SIDE {
        return UNKNOWN;
    }
    elements.checked_mul(side).unwrap_or(UNKNOWN)
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
    fn shapes_are_read_in_one_pass() {
        let of = |dims: &str| Shapes::of(dims.as_bytes()).map(|shapes| shapes.elements().to_vec());
        assert_eq!(of("[[1024, 1024], [8,2,3], []]"), Some(vec![1 << 20, 48, 1]));
        assert_eq!(of("[[4096], 7, [[2, 3], [4]]]"), Some(vec![4096, UNKNOWN, UNKNOWN]));
        assert_eq!(
            of("[[99999999999999999999, 9], [-2], [1.5], [0]]"),
            Some(vec![UNKNOWN, UNKNOWN, UNKNOWN, 0])
        );
        assert_eq!(of("[]"), Some(Vec::new()));
        assert_eq!(of("[[1], [2], [3], [4], [5], [6], [7], [8], [9]]"), None, "more than any operator has");
        for damaged in ["", "[[1, 2]", "]", "[]]", r#"["[1]"]"#] {
            assert!(of(damaged).is_none_or(|shapes| shapes.is_empty()), "{damaged}");
        }
        let shapes = Shapes::of(b"[[7], [9, 4, 1024], [9, 1024, 8], []]").unwrap();
        assert_eq!(shapes.tensors.map(|tensor| tensor.last), [[4, 1024], [1024, 8]]);
        assert_eq!(shapes.rows(), Some(4));
    }

    #[test]
    fn damaged_shapes_have_no_size() {
        for dims in ["[]", "[[-1, 4096], [4096, 4096]]", "[[1, 4096], 7]", "{}", ""] {
            assert_eq!(bytes("aten::mm", dims, r#"["float", "float"]"#), None, "{dims}");
        }
    }
}
