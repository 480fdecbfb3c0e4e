//! Which peak is the traffic compared with? The measured one, else the given one, else the link's nominal peak.

use super::snapshot::{BusPeak, GpuNow, PeakSource, Snapshot, ToWhere};
use crate::bench::{Direction, LinkSeen, Memory};
use crate::link::PcieLink;
use crate::resolve::{LinkSource, Machine};

impl LinkSeen {
    /// GB/s in one direction with the current lanes at the maximum speed: an idle GPU lowers its link speed and raises it
    /// again under load.
    pub fn under_load_gbps(self) -> f64 {
        peak(self.max_generation.max(self.generation), self.lanes)
    }

    /// GB/s in one direction at the maximum speed and width.
    pub fn most_gbps(self) -> f64 {
        peak(self.max_generation.max(self.generation), self.max_lanes.max(self.lanes))
    }
}

fn peak(generation: u32, lanes: u32) -> f64 {
    let small = |n: u32| u8::try_from(n).unwrap_or(u8::MAX);
    PcieLink { generation: small(generation), lanes: small(lanes) }.peak_gbps()
}

impl Snapshot {
    /// Compares the traffic of every GPU with its peak.
    pub fn compare_with_peak(&mut self, machine: &Machine) {
        for gpu in self.gpus.iter_mut().filter(|gpu| gpu.lost.is_none()) {
            let peak = peak_of(gpu, machine);
            let share = |rate: Option<f64>, gbps: f64| rate.map(|rate| rate / (gbps * 1e9));
            let bus = &mut gpu.bus;
            bus.estimate_payload();
            let of = |to: ToWhere| peak.as_ref().and_then(|peak| share(bus.bytes_per_s(to), peak.gbps(to)));
            let (to_device, to_host) = (of(ToWhere::Device), of(ToWhere::Host));
            (bus.to_device_share, bus.to_host_share) = (to_device, to_host);
            bus.peak = peak;
        }
    }
}

fn peak_of(gpu: &GpuNow, machine: &Machine) -> Option<BusPeak> {
    let both = |gbps: f64, source| BusPeak { to_device_gbps: gbps, to_host_gbps: gbps, source };
    let facts = machine.link_of(gpu.name.as_deref());
    let nominal = |link: LinkSeen| both(link.under_load_gbps(), PeakSource::Nominal);
    match facts.source {
        LinkSource::Measured => {
            let profile = facts.measured()?;
            let plateau = |direction| profile.copies(direction, Memory::Pinned)?.plateau_gbps();
            let to_device_gbps = plateau(Direction::H2d)?;
            let to_host_gbps = plateau(Direction::D2h).unwrap_or(to_device_gbps);
            Some(BusPeak { to_device_gbps, to_host_gbps, source: PeakSource::Measured })
        }
        LinkSource::Given => Some(both(facts.peak_gbps, PeakSource::Given)),
        // What PCIe registers say is not about the link between the chips.
        LinkSource::Recorded | LinkSource::Catalog if facts.reached_d2h_gbps.is_some() => {
            Some(both(facts.peak_gbps, PeakSource::Nominal))
        }
        LinkSource::Recorded | LinkSource::Catalog => {
            Some(gpu.link.map_or_else(|| both(facts.peak_gbps, PeakSource::Nominal), nominal))
        }
        // Traffic is never compared with an assumed link.
        LinkSource::Assumed => gpu.link.map(nominal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::snapshot::BusSource;

    fn gpu(name: &str, link: Option<LinkSeen>) -> Snapshot {
        let mut gpu = GpuNow { name: Some(name.to_owned()), link, ..GpuNow::default() };
        gpu.bus.to_device_bytes_per_s = Some(31.5e9);
        Snapshot::new(String::new(), 1.0, vec![gpu])
    }

    fn judged(mut snapshot: Snapshot, machine: &Machine) -> Option<(f64, PeakSource)> {
        snapshot.compare_with_peak(machine);
        let bus = &snapshot.gpus[0].bus;
        Some(((bus.to_device_share? * 100.0).round(), bus.peak.as_ref()?.source))
    }

    #[test]
    fn a_measured_peak_takes_precedence_over_a_given_one_and_that_over_the_nominal_one() {
        let idle = LinkSeen { generation: 1, lanes: 16, max_generation: 5, max_lanes: 16 };
        let machine = Machine::default();
        assert_eq!(judged(gpu("NVIDIA H200", Some(idle)), &machine), Some((50.0, PeakSource::Nominal)));
        let half = LinkSeen { lanes: 8, ..idle };
        assert_eq!(judged(gpu("NVIDIA H200", Some(half)), &machine), Some((100.0, PeakSource::Nominal)));
        assert_eq!(judged(gpu("NVIDIA H200", None), &machine), Some((50.0, PeakSource::Nominal)));
        assert_eq!(judged(gpu("Voodoo 2", None), &machine), None, "nothing is assumed");
        let given = Machine::named("42").unwrap();
        assert_eq!(judged(gpu("Voodoo 2", None), &given), Some((75.0, PeakSource::Given)));
    }

    /// Copies to the device used to take 107% of what the machine's copies reach, with 5.18 GB/s of data to the host.
    #[test]
    fn headers_and_requests_are_not_data() {
        let mut snapshot = gpu("NVIDIA H200", None);
        snapshot.gpus[0].bus.source = BusSource::ByteCounters;
        snapshot.gpus[0].bus.to_device_bytes_per_s = Some(59.6e9);
        snapshot.gpus[0].bus.to_host_bytes_per_s = Some(5.18e9);
        snapshot.compare_with_peak(&Machine::named("55.5").unwrap());
        let bus = &snapshot.gpus[0].bus;
        assert_eq!((bus.bytes_per_s(ToWhere::Device).unwrap() / 1e9 * 10.0).round(), 553.0);
        assert!(bus.bytes_per_s(ToWhere::Host).unwrap() < 1e6);
        assert!(bus.to_device_share.unwrap() < 1.0);
    }
}
