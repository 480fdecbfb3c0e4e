//! Which settings do the findings of a run support?

use super::{Advice, Because};
use crate::answers::diagnosis::Diagnosis;

/// The settings that each finding proposes; fixes that need code changes are not included.
pub fn advice_of_diagnosis(diagnosis: &Diagnosis) -> Advice {
    let mut settings = Vec::new();
    for finding in &diagnosis.findings {
        let (why, when) = (finding.seen.clone(), finding.precondition.clone());
        Because { settings: &mut settings, why, when }.take(finding.settings.iter().cloned());
    }
    settings.sort_by_key(|setting| setting.target);
    Advice { from: diagnosis.source.path.clone(), statement: diagnosis.verdict.statement.clone(), settings }
}
