//! How does one step with weights in host memory run, event by event?

use crate::fair_link::FairLink;

/// What one step consists of.
pub(super) struct Step<'a> {
    /// Per layer: whether it is copied.
    pub(super) offloaded: &'a [bool],
    pub(super) layer_bytes: f64,
    pub(super) exchange: Exchange,
    pub(super) link_gbps: f64,
    /// The rate of a copy without contention on the link.
    pub(super) copy_gbps: f64,
    pub(super) depth: usize,
    pub(super) compute_ms: f64,
}

/// The all-to-all at the beginning of each layer, whose kernels need its result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Exchange {
    pub(super) bytes: f64,
    pub(super) over: Over,
}

/// What the all-to-all uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Over {
    /// Links of its own, at this rate in GB/s.
    Dedicated(f64),
    /// The link of the copies, shared fairly.
    Shared,
    /// The link of the copies, which wait until it has ended.
    SharedFirst,
}

impl Exchange {
    /// Its time without copies.
    pub(super) fn alone_ms(self, link_gbps: f64) -> f64 {
        let gbps = match self.over {
            Over::Dedicated(gbps) => gbps,
            Over::Shared | Over::SharedFirst => link_gbps,
        };
        self.bytes / gbps / BYTES_PER_MS
    }
}

/// The result of one simulated step.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Simulated {
    pub(super) step_ms: f64,
    /// Wait before each layer.
    pub(super) exposed_ms: Vec<f64>,
    /// How much longer the exchanges took because of copies.
    pub(super) slowed_ms: f64,
}

/// What crosses the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Copy(usize),
    AllToAll(usize),
}

/// The running layer.
#[derive(Debug, Clone, Copy)]
struct Running {
    layer: usize,
    begin: f64,
    /// Infinite until the exchange has ended.
    kernels_end: f64,
}

/// Progress of the step.
struct State {
    link: FairLink,
    flows: Vec<Flow>,
    arrived: Vec<bool>,
    exposed: Vec<f64>,
    now: f64,
    idle_since: f64,
    running: Option<Running>,
    begun: usize,
    ended: usize,
    copying: bool,
    slowed: f64,
}

const BYTES_PER_MS: f64 = 1e6;

impl Step<'_> {
    pub(super) fn simulate(&self) -> Simulated {
        let layers = self.offloaded.len();
        let mut state = State {
            link: FairLink::new(self.link_gbps * BYTES_PER_MS),
            flows: Vec::new(),
            arrived: self.offloaded.iter().map(|copied| !copied).collect(),
            exposed: vec![0.0; layers],
            now: 0.0,
            idle_since: 0.0,
            running: None,
            begun: 0,
            ended: 0,
            copying: false,
            slowed: 0.0,
        };
        let mut to_copy = (0..layers).filter(|&layer| self.offloaded[layer]).peekable();
        loop {
            if state.running.is_none() && state.begun < layers && state.arrived[state.begun] {
                self.begin_layer(&mut state);
            }
            let (begun, ended) = (state.begun, state.ended);
            let may_begin =
                |layer: usize| if self.depth == 0 { ended >= layer } else { begun + self.depth > layer };
            if !state.copying
                && let Some(layer) = to_copy.next_if(|&layer| may_begin(layer))
            {
                self.begin_copy(&mut state, layer);
            }
            if !self.pass_to_next_end(&mut state) {
                break;
            }
        }
        Simulated { step_ms: state.now, exposed_ms: state.exposed, slowed_ms: state.slowed }
    }

    fn begin_layer(&self, state: &mut State) {
        let layer = state.begun;
        state.exposed[layer] = state.now - state.idle_since;
        let (bytes, rate) = (self.exchange.bytes, self.link_gbps * BYTES_PER_MS);
        let mut kernels_end = f64::INFINITY;
        match self.exchange.over {
            Over::Shared if bytes > 0.0 => state.link.start(state.flows.len(), bytes, rate),
            Over::SharedFirst if bytes > 0.0 => state.link.start_first(state.flows.len(), bytes, rate),
            _ => kernels_end = state.now + self.exchange.alone_ms(self.link_gbps) + self.compute_ms,
        }
        if kernels_end.is_infinite() {
            state.flows.push(Flow::AllToAll(layer));
        }
        state.running = Some(Running { layer, begin: state.now, kernels_end });
        state.begun += 1;
    }

    fn begin_copy(&self, state: &mut State, layer: usize) {
        state.link.start(state.flows.len(), self.layer_bytes, self.copy_gbps * BYTES_PER_MS);
        state.flows.push(Flow::Copy(layer));
        state.copying = true;
    }

    /// Advances to the next end of a layer's kernels or of a transfer; false if nothing is in flight.
    fn pass_to_next_end(&self, state: &mut State) -> bool {
        let kernels_left = state
            .running
            .map(|running| running.kernels_end - state.now)
            .filter(|left| *left > 0.0 && left.is_finite());
        let next = [kernels_left, state.link.next_end()].into_iter().flatten().min_by(f64::total_cmp);
        let Some(wait) = next else { return false };
        state.now += wait;
        for id in state.link.pass(wait) {
            match (state.flows[id], &mut state.running) {
                (Flow::Copy(layer), _) => {
                    state.arrived[layer] = true;
                    state.copying = false;
                }
                (Flow::AllToAll(layer), Some(running)) if running.layer == layer => {
                    running.kernels_end = state.now + self.compute_ms;
                    let alone = self.exchange.alone_ms(self.link_gbps);
                    state.slowed += (state.now - running.begin - alone).max(0.0);
                }
                (Flow::AllToAll(_), _) => {}
            }
        }
        if state.running.is_some_and(|running| running.kernels_end <= state.now + 1e-12) {
            state.running = None;
            state.ended += 1;
            state.idle_since = state.now;
        }
        true
    }
}
