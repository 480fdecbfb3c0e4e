//! What do several tests of topologies share?

pub(crate) mod tree;
