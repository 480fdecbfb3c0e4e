//! What do the findings about kernels share?

use crate::quantity::printable;

/// Share of the time. Kernels that take less are not reported.
pub(in crate::findings) const WORTH_IT: f64 = 0.05;

/// The start of a kernel's name, which templates make long.
pub(in crate::findings) fn short_name(name: &str) -> String {
    const MOST: usize = 60;
    let name = printable(name.strip_prefix("void ").unwrap_or(name));
    match name.chars().count() > MOST {
        true => name.chars().take(MOST - 1).chain(['…']).collect(),
        false => name,
    }
}
