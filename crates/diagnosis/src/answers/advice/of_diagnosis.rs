//! Which settings do the findings of a run support?

use super::{Advice, Because, Remedy};
use crate::answers::diagnosis::Diagnosis;
use crate::findings::FindingId;
use crate::settings::Proposal;

/// The settings that each finding proposes; fixes that need code changes are not included.
pub fn advice_of_diagnosis(diagnosis: &Diagnosis) -> Advice {
    let mut settings = Vec::new();
    let mut remedies = Vec::new();
    // What needs no offloading needs no settings of it either.
    let is_unneeded = diagnosis.findings.iter().any(|finding| finding.id == FindingId::UnneededOffload);
    for finding in &diagnosis.findings {
        let (why, when) = (finding.seen.clone(), finding.precondition.clone());
        let is_kept = |proposal: &&Proposal| {
            !is_unneeded || finding.id == FindingId::UnneededOffload || !proposal.target.offloads()
        };
        let kept: Vec<Proposal> = finding.settings.iter().filter(is_kept).cloned().collect();
        remedies.push(Remedy {
            title: finding.title.clone(),
            fix: finding.fix.clone(),
            targets: kept.iter().map(|proposal| proposal.target).collect(),
        });
        Because { settings: &mut settings, why, when }.take(kept);
    }
    settings.sort_by_key(|setting| setting.target);
    Advice {
        from: diagnosis.source.path.clone(),
        statement: diagnosis.verdict.statement.clone(),
        settings,
        remedies,
    }
}
