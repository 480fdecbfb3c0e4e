//! What does the activity amount to per step? The input of findings, verdict and answers.

pub(crate) mod arrivals;
pub(crate) mod attribution;
pub(crate) mod blocks;
pub(crate) mod bounds;
pub(crate) mod breakdown;
pub(crate) mod copies_around;
pub(crate) mod cpu_collectives;
pub(crate) mod cpu_copies;
pub(crate) mod cpu_only;
pub(crate) mod cpu_optimizer;
pub(crate) mod critical;
pub(crate) mod device_memory;
pub(crate) mod facts;
pub(crate) mod host_work;
pub(crate) mod incomplete;
pub(crate) mod kernel_totals;
pub(crate) mod kernels;
pub(crate) mod layer_names;
pub(crate) mod layer_waits;
mod of_each;
pub(crate) mod phases;
pub(crate) mod replay;
pub(crate) mod stages;
pub(crate) mod start_up;
pub(crate) mod throughput;
pub(crate) mod times;
pub(crate) mod unprofiled;
