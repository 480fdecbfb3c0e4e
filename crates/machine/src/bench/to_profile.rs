//! What do the samples come to? The figures that everything else trusts.

use super::samples::{Case, CopyTask, Samples};
use super::statistics::Spread;
use crate::catalogue;
use crate::link::PcieLink;
use crate::profile::{
    AllReduceFacts, CurvePoint, DuplexFacts, HbmFacts, LatencyFacts, MachineProfile, MeasuredCurve,
    OverlapFacts, PROFILE_SCHEMA, PeerFacts, PowerFacts,
};

impl Samples {
    /// The profile. Curves of what was measured; figures of suites that did not run are absent.
    pub fn profile(&self) -> MachineProfile {
        let (link, peak_gbps) = self.link();
        let mut profile = MachineProfile {
            schema: PROFILE_SCHEMA.to_owned(),
            gpu: self.identity.gpu.clone(),
            link,
            peak_gbps,
            measured: format!(
                "busbound {} bench on {}, driver {}, {}",
                self.busbound, self.identity.gpu, self.identity.driver, self.date
            ),
            date: Some(self.date.clone()),
            identity: Some(self.identity.clone()),
            ..MachineProfile::default()
        };
        profile.curves = self.curves();
        for case in &self.cases {
            add(&mut profile, case);
        }
        profile.power = self.power();
        profile
    }

    /// A curve for each way of copying, in the order in which they were first measured; what was measured
    /// several times counts as one measurement with all of its repetitions.
    fn curves(&self) -> Vec<MeasuredCurve> {
        let mut rates: Vec<(CopyTask, Vec<f64>)> = Vec::new();
        for case in &self.cases {
            // Data that did not arrive says nothing of how fast it was.
            let Case::Copy { task, copies, ns, verified: true } = case else { continue };
            let bytes = (task.bytes * u64::from(*copies)) as f64;
            let these = ns.iter().map(|ns| bytes / *ns as f64);
            match rates.iter_mut().find(|(known, _)| known == task) {
                Some((_, all)) => all.extend(these),
                None => rates.push((*task, these.collect())),
            }
        }
        let mut curves: Vec<MeasuredCurve> = Vec::new();
        for (task, rates) in rates {
            let Some(rate) = Spread::of(rates) else { continue };
            let CopyTask { direction, memory, engine, pace, bytes } = task;
            let point = CurvePoint {
                bytes,
                gbps: figure(rate.median),
                p5: Some(figure(rate.p5)),
                p95: Some(figure(rate.p95)),
            };
            let is_it = |curve: &&mut MeasuredCurve| {
                (curve.direction, curve.memory, curve.engine, curve.pace) == (direction, memory, engine, pace)
            };
            match curves.iter_mut().find(is_it) {
                Some(curve) => curve.points.push(point),
                None => curves.push(MeasuredCurve { direction, memory, engine, pace, points: vec![point] }),
            }
        }
        for curve in &mut curves {
            curve.points.sort_by_key(|point| point.bytes);
        }
        curves
    }

    /// The link as trained under load, else as the GPU's data sheet has it. A link that is not PCIe shows
    /// in no PCIe register: there the data sheet counts.
    fn link(&self) -> (String, f64) {
        let listed = catalogue::gpu_of_name(&self.identity.gpu);
        if let Some(gpu) = listed.filter(|gpu| gpu.c2c_gbps > 0.0) {
            return ("NVLink-C2C".to_owned(), gpu.c2c_gbps);
        }
        let seen = self.identity.link.and_then(|seen| {
            Some(PcieLink {
                generation: u8::try_from(seen.generation).ok().filter(|generation| *generation > 0)?,
                lanes: u8::try_from(seen.lanes).ok().filter(|lanes| *lanes > 0)?,
            })
        });
        match seen.or(listed.map(|gpu| gpu.pcie)) {
            Some(link) => (link.name(), link.peak_gbps()),
            None => {
                let assumed = PcieLink { generation: 4, lanes: 16 };
                (format!("{} (assumed)", assumed.name()), assumed.peak_gbps())
            }
        }
    }

    fn power(&self) -> Option<PowerFacts> {
        let at = |wanted: u32| {
            self.cases.iter().find_map(|case| match case {
                Case::Power { duty_percent, kernel_ns, samples, .. } if *duty_percent == wanted => {
                    // The clock takes a while to fall: the later half is the steady one.
                    let steady = &kernel_ns[kernel_ns.len() / 2..];
                    let late = &samples[samples.len() / 2..];
                    let mhz = Spread::of(late.iter().map(|one| f64::from(one.sm_mhz)));
                    let watts = Spread::of(late.iter().map(|one| one.watts));
                    Some((Spread::of_ns(steady)?, mhz.map(|s| s.median), watts.map(|s| s.median)))
                }
                _ => None,
            })
        };
        let ((half, half_mhz, half_watts), (full, full_mhz, full_watts)) = (at(50)?, at(100)?);
        Some(PowerFacts {
            full_duty_slowdown: figure(full.median / half.median),
            half_duty_mhz: half_mhz,
            full_duty_mhz: full_mhz,
            half_duty_watts: half_watts,
            full_duty_watts: full_watts,
            limit_watts: self.identity.power_limit_watts,
            like_a_gemm: self
                .cases
                .iter()
                .all(|case| !matches!(case, Case::Power { like_a_gemm: false, .. })),
        })
    }
}

fn add(profile: &mut MachineProfile, case: &Case) {
    // Data that did not arrive says nothing of how fast it was.
    if case.verified() == Some(false) {
        return;
    }
    let ratio = |beside: &[u64], alone: &[u64]| {
        Spread::of_ns(beside)
            .zip(Spread::of_ns(alone))
            .map_or(1.0, |(beside, alone)| beside.median / alone.median)
    };
    match case {
        Case::Duplex { bytes, copies, together_ns, h2d_loaded_ns, d2h_loaded_ns, .. } => {
            let moved = bytes * u64::from(*copies);
            let rate = |ns: &[u64], moved: u64| Spread::of_rates(ns, moved).map(|rate| figure(rate.median));
            profile.duplex = rate(together_ns, 2 * moved)
                .zip(rate(h2d_loaded_ns, moved).zip(rate(d2h_loaded_ns, moved)))
                .map(|(together_gbps, (h2d_loaded_gbps, d2h_loaded_gbps))| DuplexFacts {
                    bytes: *bytes,
                    together_gbps,
                    h2d_loaded_gbps,
                    d2h_loaded_gbps,
                });
        }
        Case::PeerToPeer { from, to, bytes, copies, direct, ns, .. } => {
            profile.p2p.extend(Spread::of_rates(ns, bytes * u64::from(*copies)).map(|rate| PeerFacts {
                from: *from,
                to: *to,
                direct: *direct,
                bytes: *bytes,
                gbps: figure(rate.median),
            }));
        }
        Case::Latency { what, ns } => {
            let us = Spread::of(ns.iter().map(|ns| *ns as f64 / 1e3));
            profile.latencies.extend(us.map(|us| LatencyFacts { what: *what, us }));
        }
        Case::Overlap { task, copy_alone_ns, copy_beside_ns, kernel_alone_ns, kernel_beside_ns, .. } => {
            profile.overlap.push(OverlapFacts {
                direction: task.direction,
                kernel: task.kernel,
                bytes: task.bytes,
                copy_slowdown: figure(ratio(copy_beside_ns, copy_alone_ns)),
                kernel_slowdown: figure(ratio(kernel_beside_ns, kernel_alone_ns)),
            });
        }
        Case::AllReduce { ranks, task, ns, .. } => {
            profile.allreduce.extend(Spread::of_rates(ns, task.bytes).map(|rate| AllReduceFacts {
                ranks: *ranks,
                bytes: task.bytes,
                algbw_gbps: figure(rate.median),
                busbw_gbps: figure(
                    rate.median * 2.0 * f64::from(ranks.saturating_sub(1)) / f64::from(*ranks),
                ),
            }));
        }
        Case::Hbm { bytes, engine, copies, ns, .. } => {
            // Each byte is read once and written once.
            let rate = Spread::of_rates(ns, 2 * bytes * u64::from(*copies));
            profile.hbm.extend(rate.map(|rate| HbmFacts {
                engine: *engine,
                bytes: *bytes,
                gbps: figure(rate.median),
            }));
        }
        Case::Copy { .. } | Case::DoubleBuffer { .. } | Case::Offload { .. } | Case::Power { .. } => {}
    }
}

/// Five digits: no clock tells more, and the file is for people too.
fn figure(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10f64.powi(4 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}
