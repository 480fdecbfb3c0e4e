//! Items of many nodes in one list: most nodes have none, and a list for each would take most of the time of a simulation.

use std::ops::{Index, Range};

/// Items grouped by node, in the order in which they were given.
#[derive(Debug, Clone)]
pub(crate) struct Grouped<T> {
    /// Where the items of each node begin: those of node `i` are `items[first[i]..first[i + 1]]`.
    first: Vec<u32>,
    items: Vec<T>,
}

impl<T: Copy> Grouped<T> {
    pub(crate) fn of(nodes: usize, list: &[(u32, T)]) -> Self {
        let mut first = vec![0u32; nodes + 1];
        for (node, _) in list {
            first[*node as usize + 1] += 1;
        }
        for i in 0..nodes {
            first[i + 1] += first[i];
        }
        let (mut fill, mut places) = (first.clone(), vec![0; list.len()]);
        for (place, (node, _)) in list.iter().enumerate() {
            let free = &mut fill[*node as usize];
            places[*free as usize] = place;
            *free += 1;
        }
        Self { first, items: places.into_iter().map(|place| list[place].1).collect() }
    }
}

impl<T> Grouped<T> {
    /// The items of all nodes, those of the first node first.
    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }

    /// Where the items of a node are among all.
    pub(crate) fn range(&self, node: usize) -> Range<usize> {
        self.first[node] as usize..self.first[node + 1] as usize
    }
}

impl<T> Default for Grouped<T> {
    fn default() -> Self {
        Self { first: Vec::new(), items: Vec::new() }
    }
}

impl<T> Index<usize> for Grouped<T> {
    type Output = [T];

    fn index(&self, node: usize) -> &[T] {
        &self.items[self.range(node)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_with_their_node_in_the_order_given() {
        let grouped = Grouped::of(4, &[(2, 'a'), (0, 'b'), (2, 'c')]);
        assert_eq!(
            (0..4).map(|node| &grouped[node]).collect::<Vec<_>>(),
            [&['b'][..], &[], &['a', 'c'], &[]]
        );
        assert_eq!(grouped.items(), ['b', 'a', 'c']);
    }
}
