//! What rate does each flow get, if several share wires? Max-min fair: all rise together until a wire is full, or a flow
//! has the rate that it reaches alone.

/// Traffic on wires.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// GB/s on empty wires.
    pub alone: f64,
    /// The wires, with the bytes that each carries for one byte of the flow.
    pub uses: Vec<(usize, f64)>,
}

/// GB/s of each flow; `wires` are the capacities in GB/s.
pub fn fair_rates(wires: &[f64], flows: &[Flow]) -> Vec<f64> {
    let mut rates = vec![0.0; flows.len()];
    let mut rising = vec![true; flows.len()];
    while rising.contains(&true) {
        let (mut left, mut used) = (wires.to_vec(), vec![0.0; wires.len()]);
        for (at, flow) in flows.iter().enumerate() {
            for &(wire, times) in &flow.uses {
                left[wire] -= times * rates[at];
                used[wire] += if rising[at] { times } else { 0.0 };
            }
        }
        let by_wire = left.iter().zip(&used).filter(|(_, used)| **used > 0.0).map(|(left, used)| left / used);
        let by_flow = (0..flows.len()).filter(|&at| rising[at]).map(|at| flows[at].alone - rates[at]);
        let step = by_wire.chain(by_flow).fold(f64::INFINITY, f64::min).max(0.0);
        let is_full = |wire: usize| left[wire] - step * used[wire] <= 1e-9;
        for (rate, _) in rates.iter_mut().zip(&rising).filter(|(_, rising)| **rising) {
            *rate += step;
        }
        for (at, flow) in flows.iter().enumerate() {
            let is_blocked = flow.uses.iter().any(|&(wire, times)| times > 0.0 && is_full(wire));
            rising[at] &= !is_blocked && rates[at] < flow.alone - 1e-9;
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(alone: f64, uses: &[(usize, f64)]) -> Flow {
        Flow { alone, uses: uses.to_vec() }
    }

    #[test]
    fn a_flow_that_cannot_use_its_share_leaves_the_rest_to_the_others() {
        let wires = [30.0];
        assert_eq!(fair_rates(&wires, &[flow(50.0, &[(0, 1.0)]), flow(50.0, &[(0, 1.0)])]), [15.0, 15.0]);
        assert_eq!(fair_rates(&wires, &[flow(5.0, &[(0, 1.0)]), flow(50.0, &[(0, 1.0)])]), [5.0, 25.0]);
        // One of them crosses the wire twice.
        assert_eq!(fair_rates(&wires, &[flow(50.0, &[(0, 2.0)]), flow(50.0, &[(0, 1.0)])]), [10.0, 10.0]);
        assert_eq!(fair_rates(&wires, &[flow(50.0, &[])]), [50.0]);
    }
}
