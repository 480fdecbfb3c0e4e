//! In which order would NCCL put the GPUs into a ring? Over NVLink only if such a ring exists, else the closest next.

use super::super::Connection;
use super::wires::Wires;

/// Steps of the search; a ring of a machine that exists is found in a few.
const MOST_STEPS: usize = 20_000;

/// The GPUs in the order of the ring; fewer than two make none.
pub(super) fn ring(wires: &Wires<'_>, gpus: usize) -> Vec<usize> {
    if gpus < 2 {
        return Vec::new();
    }
    let mut order = vec![0];
    let mut steps = 0;
    if over_nvlink(wires, gpus, &mut order, &mut steps) { order } else { closest(wires, gpus) }
}

fn is_nvlink(wires: &Wires<'_>, a: usize, b: usize) -> bool {
    wires
        .pair(a, b)
        .is_some_and(|pair| matches!(pair.connection, Connection::NvLink(_)) && !pair.is_refused())
}

/// Extends the order to a ring over NVLink; the order is as before if there is none.
fn over_nvlink(wires: &Wires<'_>, gpus: usize, order: &mut Vec<usize>, steps: &mut usize) -> bool {
    *steps += 1;
    let last = order[order.len() - 1];
    if order.len() == gpus {
        return is_nvlink(wires, last, order[0]);
    }
    for next in 0..gpus {
        if *steps > MOST_STEPS || order.contains(&next) || !is_nvlink(wires, last, next) {
            continue;
        }
        order.push(next);
        if over_nvlink(wires, gpus, order, steps) {
            return true;
        }
        order.pop();
    }
    false
}

/// Always to the closest GPU that is left.
fn closest(wires: &Wires<'_>, gpus: usize) -> Vec<usize> {
    let mut order = vec![0];
    while order.len() < gpus {
        let last = order[order.len() - 1];
        let distance = |next: &usize| {
            let pair = wires.pair(last, *next);
            pair.map_or(Connection::Sys, |pair| pair.connection)
        };
        let next = (0..gpus).filter(|next| !order.contains(next)).min_by_key(distance);
        order.extend(next);
    }
    order
}
