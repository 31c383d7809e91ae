//! Control flow of a function: dominators, loops, and what a branch decides.

use crate::module::Function;

/// The blocks of a function from which it can return, and how they follow each other. Those that end in a trap are left
/// out: no wave goes on after it.
pub(super) struct Flow {
    successors: Vec<Vec<usize>>,
    predecessors: Vec<Vec<usize>>,
    /// Blocks that can be reached, each one before those after it unless it is in a loop with them.
    order: Vec<usize>,
    /// For each block the next one that every way to the end goes through; for the last the end itself.
    post_dominator: Vec<usize>,
    /// The blocks of each loop.
    pub loops: Vec<Loop>,
}

/// A loop.
pub(super) struct Loop {
    pub header: usize,
    pub contains: Vec<bool>,
}

/// What follows from a branch that not all take alike.
#[derive(Clone, Default)]
pub(super) struct Influence {
    /// Blocks that only some come to, or that some come to again.
    pub blocks: Vec<usize>,
    /// Blocks in which ways meet that some took and others did not.
    pub joins: Vec<usize>,
}

impl Flow {
    pub fn of(function: &Function) -> Flow {
        let count = function.blocks.len();
        let end = count;
        let mut successors: Vec<Vec<usize>> = vec![Vec::new(); count + 1];
        for (from, block) in function.blocks.iter().enumerate() {
            successors[from].clone_from(&block.successors);
            if block.insts.last().is_some_and(|last| last.opcode == "ret") {
                successors[from].push(end);
            }
        }
        let predecessors = reversed(&successors);
        let returns = reach(&predecessors, end);
        let reached = reach(&successors, 0);
        for (from, to) in successors.iter_mut().enumerate() {
            to.retain(|&to| returns[from] && returns[to] && reached[from]);
            to.dedup();
        }
        let predecessors = reversed(&successors);
        let order = order(&successors, 0);
        let dominator = dominators(&successors, &predecessors, 0);
        let post_dominator = dominators(&predecessors, &successors, end);
        let loops = loops(&order, &successors, &predecessors, &dominator);
        Flow { successors, predecessors, order, post_dominator, loops }
    }

    /// Whether a block has more than one way to go on.
    pub fn branches(&self, block: usize) -> bool {
        self.successors[block].len() > 1
    }

    /// The blocks in the order of control flow, without the end.
    pub fn order(&self) -> impl Iterator<Item = usize> + '_ {
        let end = self.successors.len() - 1;
        self.order.iter().copied().filter(move |&block| block != end)
    }

    /// What the branch at the end of a block decides: everything up to where all ways from it have met again.
    pub fn influence(&self, branch: usize) -> Influence {
        let meets = self.post_dominator[branch];
        let mut inside = vec![false; self.successors.len()];
        let mut todo: Vec<usize> = self.successors[branch].clone();
        while let Some(block) = todo.pop() {
            if block != meets && !std::mem::replace(&mut inside[block], true) {
                todo.extend(&self.successors[block]);
            }
        }
        // Each block is labelled by the last place where ways met before it: two labels meet in a new one.
        let mut label: Vec<Option<usize>> = vec![None; self.successors.len()];
        for &next in &self.successors[branch] {
            label[next] = Some(next);
        }
        let of_branch = |block: usize| self.successors[branch].contains(&block);
        let mut joins = vec![false; self.successors.len()];
        loop {
            let mut changed = false;
            for &block in &self.order {
                if !inside[block] && block != meets {
                    continue;
                }
                let from_the_branch = of_branch(block).then_some(block);
                let from_others = self.predecessors[block]
                    .iter()
                    .filter(|&&before| before != branch && inside[before])
                    .filter_map(|&before| label[before]);
                let mut labels = from_the_branch.into_iter().chain(from_others);
                let Some(first) = labels.next() else { continue };
                let differ = labels.any(|other| other != first);
                let now = if joins[block] || differ { block } else { first };
                changed |= (differ && !joins[block]) || label[block] != Some(now);
                joins[block] |= differ;
                label[block] = Some(now);
            }
            if !changed {
                break;
            }
        }
        let marked = |marks: &[bool]| (0..marks.len()).filter(|&block| marks[block]).collect();
        Influence { blocks: marked(&inside), joins: marked(&joins) }
    }
}

fn reversed(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut back = vec![Vec::new(); edges.len()];
    for (from, to) in edges.iter().enumerate() {
        for &to in to {
            back[to].push(from);
        }
    }
    back
}

fn reach(edges: &[Vec<usize>], from: usize) -> Vec<bool> {
    let mut reached = vec![false; edges.len()];
    let mut todo = vec![from];
    while let Some(node) = todo.pop() {
        if !std::mem::replace(&mut reached[node], true) {
            todo.extend(&edges[node]);
        }
    }
    reached
}

/// Nodes that can be reached, in reverse postorder.
fn order(edges: &[Vec<usize>], from: usize) -> Vec<usize> {
    let mut seen = vec![false; edges.len()];
    let mut order = Vec::new();
    let mut stack = vec![(from, 0)];
    seen[from] = true;
    while let Some((node, next)) = stack.last_mut() {
        match edges[*node].get(*next) {
            Some(&to) => {
                *next += 1;
                if !std::mem::replace(&mut seen[to], true) {
                    stack.push((to, 0));
                }
            }
            None => {
                order.push(*node);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}

/// The immediate dominator of each node; of the first, and of those that are not reached, the node itself (Cooper, Harvey
/// and Kennedy, "A simple, fast dominance algorithm").
fn dominators(edges: &[Vec<usize>], back: &[Vec<usize>], from: usize) -> Vec<usize> {
    let order = order(edges, from);
    let mut rank = vec![usize::MAX; edges.len()];
    for (at, &node) in order.iter().enumerate() {
        rank[node] = at;
    }
    let mut dominator: Vec<Option<usize>> = vec![None; edges.len()];
    dominator[from] = Some(from);
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for &node in order.iter().skip(1) {
            let mut common: Option<usize> = None;
            for &before in &back[node] {
                if dominator[before].is_none() {
                    continue;
                }
                common = Some(match common {
                    None => before,
                    Some(mut one) => {
                        let mut other = before;
                        while one != other {
                            while rank[one] > rank[other] {
                                one = dominator[one].unwrap_or(from);
                            }
                            while rank[other] > rank[one] {
                                other = dominator[other].unwrap_or(from);
                            }
                        }
                        one
                    }
                });
            }
            changed |= common.is_some() && dominator[node] != common;
            dominator[node] = common.or(dominator[node]);
        }
    }
    dominator.iter().enumerate().map(|(node, dominator)| dominator.unwrap_or(node)).collect()
}

fn loops(
    order: &[usize],
    successors: &[Vec<usize>],
    predecessors: &[Vec<usize>],
    dominator: &[usize],
) -> Vec<Loop> {
    let dominates = |one: usize, mut other: usize| {
        while other != one && dominator[other] != other {
            other = dominator[other];
        }
        other == one
    };
    let mut loops: Vec<Loop> = Vec::new();
    for &from in order {
        for &header in successors[from].iter().filter(|&&to| dominates(to, from)) {
            let at = loops.iter().position(|l| l.header == header).unwrap_or_else(|| {
                let mut contains = vec![false; successors.len()];
                contains[header] = true;
                loops.push(Loop { header, contains });
                loops.len() - 1
            });
            let mut todo = vec![from];
            while let Some(block) = todo.pop() {
                if !std::mem::replace(&mut loops[at].contains[block], true) {
                    todo.extend(&predecessors[block]);
                }
            }
        }
    }
    loops
}
