//! What would happen if: runs of a trace made again with a change, and plans of runs not made yet.
//!
//! No IO and no clock. Every plan says which inputs it took and by which formulas it came to its result.
//!
//! ```
//! use busbound_machine::Interconnect;
//! use busbound_whatif::plan::allreduce::{Cluster, ring_bytes, ring_ms};
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
