//! A link shared fairly: every transfer of one direction gets the same part of it, up to what it can take.

/// One transfer under way.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Flow {
    id: usize,
    left: f64,
    /// What it reaches alone, in bytes a millisecond.
    alone: f64,
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
        self.flows.push(Flow { id, left: bytes, alone: alone.min(self.capacity) });
    }

    /// Rates by max-min fairness: whoever can take less than an equal part leaves the rest to the others.
    fn rates(&self) -> Vec<f64> {
        let mut order: Vec<usize> = (0..self.flows.len()).collect();
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

    /// In how long the next transfer ends, if nothing else begins.
    pub(crate) fn next_end(&self) -> Option<f64> {
        let rates = self.rates();
        self.flows.iter().zip(rates).map(|(flow, rate)| flow.left / rate).min_by(f64::total_cmp)
    }

    /// Lets time pass; the transfers that end in it.
    pub(crate) fn pass(&mut self, ms: f64) -> Vec<usize> {
        let rates = self.rates();
        let mut ended = Vec::new();
        for (flow, rate) in self.flows.iter_mut().zip(rates) {
            flow.left -= rate * ms;
            // Less than a thousandth of a byte is rounding.
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
    fn two_share_and_the_one_left_speeds_up() {
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
    fn who_can_take_less_leaves_the_rest() {
        let mut link = FairLink::new(10.0);
        link.start(0, 20.0, 2.0);
        link.start(1, 80.0, 10.0);
        assert_eq!(link.next_end(), Some(10.0));
        assert_eq!(link.pass(10.0), [0, 1]);
    }
}
