//! How does one step with weights in host memory run, event by event?

use crate::fair_link::FairLink;

/// What one step consists of.
pub(super) struct Step<'a> {
    /// Per layer: whether it is copied.
    pub(super) offloaded: &'a [bool],
    pub(super) layer_bytes: f64,
    pub(super) all_to_all_bytes: f64,
    pub(super) link_gbps: f64,
    /// The rate of a copy without contention on the link.
    pub(super) copy_gbps: f64,
    pub(super) depth: usize,
    pub(super) compute_ms: f64,
}

/// The result of one simulated step.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Simulated {
    pub(super) step_ms: f64,
    /// Wait before each layer.
    pub(super) exposed_ms: Vec<f64>,
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
    kernels_end: f64,
    exchanged: bool,
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
            if !state.pass_to_next_end() {
                break;
            }
        }
        Simulated { step_ms: state.now, exposed_ms: state.exposed }
    }

    fn begin_layer(&self, state: &mut State) {
        let layer = state.begun;
        state.exposed[layer] = state.now - state.idle_since;
        let exchanged = self.all_to_all_bytes <= 0.0;
        if !exchanged {
            state.link.start(state.flows.len(), self.all_to_all_bytes, self.link_gbps * BYTES_PER_MS);
            state.flows.push(Flow::AllToAll(layer));
        }
        state.running = Some(Running { layer, kernels_end: state.now + self.compute_ms, exchanged });
        state.begun += 1;
    }

    fn begin_copy(&self, state: &mut State, layer: usize) {
        state.link.start(state.flows.len(), self.layer_bytes, self.copy_gbps * BYTES_PER_MS);
        state.flows.push(Flow::Copy(layer));
        state.copying = true;
    }
}

impl State {
    /// Advances to the next end of a layer's kernels or of a transfer; false if nothing is in flight.
    fn pass_to_next_end(&mut self) -> bool {
        let kernels_left =
            self.running.map(|running| running.kernels_end - self.now).filter(|left| *left > 0.0);
        let next = [kernels_left, self.link.next_end()].into_iter().flatten().min_by(f64::total_cmp);
        let Some(wait) = next else { return false };
        self.now += wait;
        for id in self.link.pass(wait) {
            match (self.flows[id], &mut self.running) {
                (Flow::Copy(layer), _) => {
                    self.arrived[layer] = true;
                    self.copying = false;
                }
                (Flow::AllToAll(layer), Some(running)) if running.layer == layer => running.exchanged = true,
                (Flow::AllToAll(_), _) => {}
            }
        }
        if self.running.is_some_and(|running| running.exchanged && running.kernels_end <= self.now + 1e-12) {
            self.running = None;
            self.ended += 1;
            self.idle_since = self.now;
        }
        true
    }
}
