//! What would change if? Replays a trace with a change, and estimates runs before launching them.
//!
//! No I/O and no clock. Every plan lists its inputs and its formulas.
//!
//! ```
//! use busbound_machine::Interconnect;
//! use busbound_whatif::plan::allreduce::{ring_bytes, ring_ms};
//! use busbound_whatif::plan::cluster::Cluster;
//! // 7e9 fp16 gradients on 8 GPUs over 32 GB/s.
//! let bytes = 14e9;
//! assert_eq!(ring_bytes(bytes, 8), 24.5e9);
//! assert!((ring_ms(bytes, 8, 32.0) - 765.6).abs() < 0.1);
//! # let _ = Cluster::one_node(8, Interconnect::named("pcie4x16")?);
//! # Ok::<(), busbound_machine::UnknownLink>(())
//! ```

mod fair_link;
pub mod plan;
mod range;
pub mod replay;

pub use range::Range;
