//! What can this trace not attribute to stages and blocks?

use super::Scope;
use crate::options::BlockChoice;

pub(super) fn stages(scope: &Scope<'_>) -> Option<String> {
    scope.no_stages.map(|why| format!("Stages: {why}."))
}

pub(super) fn blocks(scope: &Scope<'_>) -> Option<String> {
    match &scope.options.blocks {
        BlockChoice::Matching(wanted) if !scope.has_blocks => {
            Some(format!("No annotation matches --by {wanted}, so no time is attributed to blocks."))
        }
        _ => None,
    }
}
