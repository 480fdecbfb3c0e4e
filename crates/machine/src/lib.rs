//! What can the hardware do? Links, GPUs, and how fast a copy of a given size can be.
//!
//! No I/O and no clock, except in [`topology::from_sysfs`]. Rates are GB/s (10⁹ bytes per second) in one direction.
//!
//! ```
//! use busbound_machine::{HostMemory, Machine};
//! let machine = Machine::default();
//! let link = machine.link_of(Some("NVIDIA H200"));
//! assert_eq!(link.name, "PCIe 5 x16");
//! assert!((link.peak_gbps - 63.0).abs() < 0.1);
//! // A 4 KiB copy at 1.5 GB/s is not slow; it is small.
//! assert!(link.expected_gbps(4096, HostMemory::Pinned) < 2.0);
//! ```

pub mod bench;
mod catalog;
pub mod compile_log;
mod curve;
mod fair_share;
pub mod flight_recorder;
mod interconnect;
mod link;
pub mod live;
pub mod nccl_log;
mod profile;
mod profiler_cost;
mod quantile;
mod reference;
mod resolve;
mod scatter;
pub mod spelling;
pub mod topology;

pub use bench::terms::HostMemory;
pub use catalog::{ChipLink, Fabric, GpuFacts, catalog, gpu_of_key, gpu_of_name};
pub use fair_share::{Flow, fair_rates};
pub use interconnect::{Hop, Interconnect, NvLinkGeneration, UnknownLink};
pub use link::{DUPLEX, Lane, NCCL_SHARE, PcieLink};
pub use profile::{
    AllReduceFacts, ContentionFacts, CurvePoint, DuplexFacts, HbmFacts, LatencyFacts, MachineProfile,
    MeasuredCurve, NodeFacts, OverlapFacts, PROFILE_SCHEMA, PeerFacts, PowerFacts, Processes, ProfileError,
    ScatterGrid, ScatterPoint,
};
pub use profiler_cost::{ProfilerCost, ProfilerTool};
pub use quantile::{median, quantile};
pub use reference::{NvLinkRates, PcieGeneration, PcieWidth, REFERENCE_SCHEMA, Reference, ReferenceList};
pub use resolve::{LinkFacts, LinkSource, Machine, Seen, UnknownMachine};
pub use scatter::{Blocks, ScatterChoice, ScatterCost, ScatterSource};
