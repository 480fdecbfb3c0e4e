//! Is what was recorded enough for a verdict?

use busbound_trace::Trace;

use super::Survey;
use super::missing::Missing;
use crate::analysis::incomplete;
use crate::verdict::Withheld;

/// Why figures mislead: much GPU work is missing, or records contradict each other.
pub(crate) fn why_incomplete(trace: &Trace, survey: &Survey) -> Option<Withheld> {
    // For the whole file: a part lacks the work of launches after its last step.
    let of_file =
        |missing: &Missing| Withheld { id: missing.id, why: missing.what.clone(), remedy: missing.remedy };
    incomplete::reason(trace).or_else(|| Missing::withholds(&survey.missing).map(of_file))
}
