//! Which hash maps do the crates use? Those of the standard library, so that Clippy sees every iteration over one (the order
//! differs in each run and must not affect a result), with a faster hasher.

use hashbrown::DefaultHashBuilder;

/// [`std::collections::HashMap`] with a fast hasher.
pub type HashMap<K, V> = std::collections::HashMap<K, V, DefaultHashBuilder>;

/// [`std::collections::HashSet`] with a fast hasher.
pub type HashSet<T> = std::collections::HashSet<T, DefaultHashBuilder>;
