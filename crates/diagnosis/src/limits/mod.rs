//! What is not visible in this trace?
//!
//! A limitation is a line in [`id`] and a check in a table here, or in the survey's table if the trace lacks something
//! that can be recorded. Checks are in display order.

mod blocks;
mod host_only;
pub(crate) mod id;
mod link;
mod loss;
mod steps;

pub(crate) use steps::part_of_long_trace;
mod work;

use serde::Serialize;

use crate::analysis::cpu_copies::CpuCopies;
use crate::analysis::facts::Facts;
use crate::answers::survey::Survey;
use crate::options::Options;
use crate::steps::steady::LeftOut;
use crate::verdict::Withheld;
use id::LimitationId;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limitation {
    pub id: LimitationId,
    pub text: String,
}

/// The input of the checks.
pub(crate) struct Scope<'s> {
    pub(crate) facts: &'s Facts<'s>,
    pub(crate) survey: &'s Survey,
    pub(crate) options: &'s Options,
    pub(crate) left_out: &'s LeftOut,
    pub(crate) cpu_copies: &'s [CpuCopies],
    /// Whether so much GPU work is lost that shares of the rest would mislead.
    pub(crate) is_incomplete: bool,
    /// Why nothing can be said about later steps.
    pub(crate) start_up: Option<&'s Withheld>,
    /// Why the chosen stages cannot be analyzed.
    pub(crate) no_stages: Option<&'s str>,
    /// Whether any time was attributed to blocks.
    pub(crate) has_blocks: bool,
}

/// How a limitation is detected, and its text.
enum Check {
    One(fn(&Scope<'_>) -> Option<String>),
    Several(fn(&Scope<'_>) -> Vec<String>),
}
use Check::{One, Several};

/// Limitations of the file itself. What the survey finds missing comes next.
const OF_FILE: &[(LimitationId, Check)] = &[(LimitationId::Lost, Several(loss::parts))];

const OF_RUN: &[(LimitationId, Check)] = &[
    (LimitationId::Sampled, One(steps::sampled)),
    (LimitationId::Steps, One(steps::none)),
    // Before what an iteration is: an answer that has room for one note needs this one.
    (LimitationId::Coverage, One(steps::coverage)),
    (LimitationId::StepsByPeriod, One(steps::by_period)),
    (LimitationId::EarlyWork, One(steps::early_work)),
    (LimitationId::LongStepLeftOut, One(steps::long_step)),
    (LimitationId::OutliersLeftOut, One(steps::outliers)),
    (LimitationId::WarmUp, One(steps::warm_up)),
    (LimitationId::StartUp, One(steps::start_up)),
    (LimitationId::LinkAssumed, One(link::assumed)),
    (LimitationId::Confidential, One(link::confidential)),
    (LimitationId::SharedLink, One(link::shared)),
    (LimitationId::LinkState, One(link::state)),
    (LimitationId::UnlikeGpus, One(work::unlike_gpus)),
    (LimitationId::LinkWrong, One(link::wrong)),
    (LimitationId::NoKernels, One(work::no_kernels)),
    (LimitationId::ManagedInKernels, One(work::managed_in_kernels)),
    (LimitationId::HostMemory, One(work::host_memory)),
    (LimitationId::ProfilerCost, One(work::profiler_cost)),
    (LimitationId::OneRank, One(work::one_rank)),
    (LimitationId::FlightRecorder, Several(work::flight_recorder)),
    (LimitationId::LostRows, Several(loss::rows)),
    (LimitationId::NoEnd, One(loss::no_end)),
    (LimitationId::CpuOnly, One(host_only::no_gpu)),
    (LimitationId::Asynchronous, One(host_only::asynchronous)),
    (LimitationId::Undecided, One(host_only::undecided)),
    (LimitationId::NoShapes, One(host_only::no_shapes)),
    (LimitationId::Stages, One(blocks::stages)),
    (LimitationId::Blocks, One(blocks::blocks)),
];

/// What the answer cannot know, in display order.
pub(crate) fn limitations(scope: &Scope<'_>) -> Vec<Limitation> {
    let of = |table: &[(LimitationId, Check)]| -> Vec<Limitation> {
        let run = |(id, check): &(LimitationId, Check)| {
            let texts = match check {
                One(check) => check(scope).into_iter().collect(),
                Several(check) => check(scope),
            };
            let id = *id;
            texts.into_iter().map(move |text| Limitation { id, text })
        };
        table.iter().flat_map(run).collect()
    };
    let missing = scope.survey.missing.iter().filter(|missing| missing.limits_diagnosis());
    let missing = missing.map(|missing| Limitation {
        id: missing.id,
        text: format!("{}; this prevents {}.", missing.what, missing.prevents),
    });
    let mut list = of(OF_FILE);
    list.extend(missing);
    list.extend(of(OF_RUN));
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::survey::missing;

    /// One check detects a limitation: of the file, of the survey or of the run. `steps` has two, because the survey
    /// counts annotations and the diagnosis may detect an iteration; `kernel_records` has one for no kernel at all, which
    /// has another remedy.
    #[test]
    fn every_limitation_has_a_check() {
        for &id in LimitationId::ALL {
            let checks = OF_FILE.iter().chain(OF_RUN).filter(|(of, _)| *of == id).count()
                + missing::checked().filter(|of| *of == id).count();
            let two = [LimitationId::Steps, LimitationId::KernelRecords];
            assert_eq!(checks, if two.contains(&id) { 2 } else { 1 }, "{id}");
        }
    }
}
