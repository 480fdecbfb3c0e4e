//! Do two readings of the same input give the same trace?

use busbound_trace::Trace;

pub fn assert_same(one: Option<Trace>, two: Option<Trace>) {
    assert_eq!(one.is_some(), two.is_some());
    if let (Some(one), Some(two)) = (one, two) {
        assert_eq!(one.stats(), two.stats());
        assert_eq!(one.origin(), two.origin());
        for (a, b) in one.events().zip(two.events()) {
            assert_eq!(
                (a.name(), a.start(), a.duration(), a.place()),
                (b.name(), b.start(), b.duration(), b.place())
            );
        }
        let walked: usize = one.tracks().iter().map(|track| track.events().len()).sum();
        assert_eq!(walked, one.len());
    }
}
