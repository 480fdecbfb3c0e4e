//! Do ranks of one machine talk through host memory although their GPUs have NVLink?

use busbound_cause::Resource;
use busbound_machine::nccl_log::{NcclLog, NcclRemarkId, Transport};
use serde_json::json;

use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;
use crate::saving::Saving;
use crate::settings::Target;

pub(super) static RULE: Rule = Rule {
    title: "Collectives through host memory",
    doing: "letting the GPUs reach each other directly",
    precondition: "The driver and the container allow peer access between the GPUs.",
    basis: "bound: exposed communication, scaled by the ratio of the rates of PCIe and NVLink",
    candidate: Candidate::None(
        "No what-if change replaces the transport of collectives: one rank's trace does not show which part of a collective \
         is transfer and which is waiting for other ranks.",
    ),
    effort: Effort::Setting,
    unless: &[],
    relieves: &[Resource::Collectives],
    check,
    document: Document {
        meaning: "NCCL connected ranks of one machine through host memory (SHM) although their GPUs have NVLink. Every byte \
                  crosses PCIe twice and shares it with the run's own copies.",
        computed: "Evidence: `via SHM` in the log that `--nccl-log` gives, and NVLink in that log (NCCL's topology or NVLS) or \
                   by the GPU's name. Saving: between zero and the exposed communication times one minus the ratio of the \
                   rates.",
        fix: "Allow peer access: unset `NCCL_P2P_DISABLE` and `NCCL_P2P_LEVEL`, give containers all GPUs and `--ipc=host`, \
              check `nvidia-smi topo -p2p r` and `busbound topo`.",
        code: &["unset NCCL_P2P_DISABLE NCCL_P2P_LEVEL"],
        assumes: "The driver and the container allow peer access between the GPUs.",
    },
};

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let log = facts.nccl_log.as_ref()?;
    let remark = log.remarks.iter().find(|remark| remark.id == NcclRemarkId::ShmWithNvlink)?;
    if facts.time.comm_ms <= 0.0 {
        return None;
    }
    let (steps, per) = (facts.steps(), facts.unit().per());
    let exposed = facts.time.exposed_comm_ms / facts.gpu_steps();
    let nvlink = facts.link.peer_gbps().or(log.wiring.nvlink_gbps)?;
    let gained = (1.0 - facts.link.reachable_gbps() / nvlink).max(0.0);
    Some(Draft {
        title: None,
        seen: format!(
            "{} Collectives take {}{per}, {} of it not overlapped with compute.",
            remark.text,
            milliseconds(facts.time.comm_ms / steps),
            milliseconds(exposed),
        ),
        evidence: json!({
            "pairs_over_shm": log.over(Transport::Shm).count(),
            "pairs_over_p2p": log.over(Transport::P2p).count(),
            "comm_ms_per_step": facts.time.comm_ms / steps,
            "exposed_ms_per_step": exposed,
        }),
        saves: Saving { low: 0.0, high: exposed * gained },
        fix: fix(&remark.remedy, log),
        at: facts.timelines.iter().flat_map(|line| line.communication.iter().collect::<Vec<_>>()).collect(),
    })
}

/// NCCL's variables are set only where the log shows one that causes this.
fn fix(remedy: &str, log: &NcclLog) -> Fix {
    const DISABLE: &str = "NCCL_P2P_DISABLE";
    let fix = Fix::new(remedy);
    let is_disabled = log.setting(DISABLE).is_some_and(|value| value != "0");
    if is_disabled { fix.setting(Target::Environment, DISABLE, 0_u32) } else { fix }
}

#[cfg(test)]
mod tests {
    use busbound_machine::Machine;
    use busbound_machine::nccl_log::NcclLog;
    use busbound_trace::TraceBuilder;

    use crate::{Diagnosis, FindingId, Options, Source, advice_of_diagnosis, diagnose};

    /// Six times 4 ms of a collective that runs alone.
    fn diagnosed(log: Option<&str>) -> Diagnosis {
        let mut trace = TraceBuilder::default();
        let (compute, other) = (trace.stream(0, 7), trace.stream(0, 9));
        for step in 0..6 {
            let start = step * 10_000_000;
            trace.kernel(compute, "gemm", start..start + 6_000_000);
            trace.kernel(
                other,
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                start + 6_000_000..start + 10_000_000,
            );
        }
        let options = Options { nccl_log: log.and_then(NcclLog::parse), ..Options::default() };
        diagnose(&trace.finish(), &Source::named("run"), &Machine::default(), &options)
    }

    fn findings(log: Option<&str>) -> Vec<(FindingId, f64)> {
        diagnosed(log).findings.iter().map(|one| (one.id, one.saves_ms_per_step.high)).collect()
    }

    #[test]
    fn a_variable_of_nccl_is_set_only_where_the_log_shows_it() {
        let log = include_str!("../../../../fixtures/nccl/shm.log");
        let written = |log: &str| {
            let settings = advice_of_diagnosis(&diagnosed(Some(log))).settings;
            let of_nccl = settings.iter().find(|setting| setting.key.starts_with("NCCL_"));
            of_nccl.map(|setting| format!("{}={}", setting.key, setting.value))
        };
        assert_eq!(written(log).as_deref(), Some("NCCL_P2P_DISABLE=0"));
        assert_eq!(written(&log.replace("NCCL_P2P_DISABLE", "NCCL_ALGO")), None);
    }

    #[test]
    fn host_memory_between_gpus_with_nvlink_is_a_finding_only_with_the_log() {
        let log = include_str!("../../../../fixtures/nccl/shm.log");
        let of = |found: &[(FindingId, f64)]| {
            found.iter().find(|(id, _)| *id == FindingId::ShmTransport).map(|(_, saves)| *saves)
        };
        assert_eq!(of(&findings(None)), None);
        // NVLink is in the log; of 6 × 4 ms exposed, PCIe 4 x16 has 27.7 of 360 GB/s. Without steps, the run is one.
        let saves = of(&findings(Some(log))).unwrap();
        assert!((saves - 24.0 * (1.0 - 27.727 / 360.0)).abs() < 0.01, "{saves}");
        let over_nvlink = log.replace("via SHM", "via P2P");
        assert_eq!(of(&findings(Some(&over_nvlink))), None);
    }
}
