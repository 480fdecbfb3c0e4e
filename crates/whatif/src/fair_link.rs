//! How do transfers share a link? Fairly: each one in a direction gets an equal share, up to its own limit.

/// One transfer in flight.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Flow {
    id: usize,
    left: f64,
    /// Its rate without contention, in bytes per millisecond.
    alone: f64,
    /// While it is in flight, the others wait.
    goes_first: bool,
}

/// One direction of a link, in bytes and milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FairLink {
    capacity: f64,
    flows: Vec<Flow>,
}

impl FairLink {
    pub(crate) fn new(capacity: f64) -> Self {
        Self { capacity, flows: Vec::new() }
    }

    pub(crate) fn start(&mut self, id: usize, bytes: f64, alone: f64) {
        self.flows.push(Flow { id, left: bytes, alone: alone.min(self.capacity), goes_first: false });
    }

    /// Starts a transfer that the others wait for.
    pub(crate) fn start_first(&mut self, id: usize, bytes: f64, alone: f64) {
        self.start(id, bytes, alone);
        if let Some(flow) = self.flows.last_mut() {
            flow.goes_first = true;
        }
    }

    /// Max-min fair rates: a transfer that cannot use its equal share leaves the rest to the others.
    fn rates(&self) -> Vec<f64> {
        let first = self.flows.iter().any(|flow| flow.goes_first);
        let mut order: Vec<usize> =
            (0..self.flows.len()).filter(|&i| !first || self.flows[i].goes_first).collect();
        order.sort_by(|&a, &b| self.flows[a].alone.total_cmp(&self.flows[b].alone));
        let mut rates = vec![0.0; self.flows.len()];
        let mut left = self.capacity;
        for (done, flow) in order.iter().enumerate() {
            let part = left / (order.len() - done) as f64;
            rates[*flow] = self.flows[*flow].alone.min(part);
            left -= rates[*flow];
        }
        rates
    }

    /// Time until the next transfer ends, if no other one starts.
    pub(crate) fn next_end(&self) -> Option<f64> {
        let rates = self.rates();
        let moving = self.flows.iter().zip(rates).filter(|(_, rate)| *rate > 0.0);
        moving.map(|(flow, rate)| flow.left / rate).min_by(f64::total_cmp)
    }

    /// Advances time; returns the transfers that end.
    pub(crate) fn pass(&mut self, ms: f64) -> Vec<usize> {
        let rates = self.rates();
        let mut ended = Vec::new();
        for (flow, rate) in self.flows.iter_mut().zip(rates) {
            flow.left -= rate * ms;
            // Less than a thousandth of a byte is a rounding error.
            if flow.left <= 1e-3 {
                ended.push(flow.id);
            }
        }
        self.flows.retain(|flow| flow.left > 1e-3);
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_transfers_share_and_the_remaining_one_speeds_up() {
        let mut link = FairLink::new(10.0);
        link.start(0, 100.0, 10.0);
        link.start(1, 50.0, 10.0);
        assert_eq!(link.next_end(), Some(10.0));
        assert_eq!(link.pass(10.0), [1]);
        assert_eq!(link.next_end(), Some(5.0));
        assert_eq!(link.pass(5.0), [0]);
        assert_eq!(link.next_end(), None);
    }

    #[test]
    fn others_wait_for_a_transfer_that_goes_first() {
        let mut link = FairLink::new(10.0);
        link.start(0, 100.0, 10.0);
        link.start_first(1, 50.0, 10.0);
        assert_eq!((link.next_end(), link.pass(5.0)), (Some(5.0), vec![1]));
        assert_eq!((link.next_end(), link.pass(10.0)), (Some(10.0), vec![0]));
    }

    #[test]
    fn a_slow_transfer_leaves_its_unused_share_to_the_others() {
        let mut link = FairLink::new(10.0);
        link.start(0, 20.0, 2.0);
        link.start(1, 80.0, 10.0);
        assert_eq!(link.next_end(), Some(10.0));
        assert_eq!(link.pass(10.0), [0, 1]);
    }
}
