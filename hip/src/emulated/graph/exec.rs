//! Graphs that can be launched.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Graph, Node};
use crate::emulated::Runtime;
use crate::emulated::stream::Stream;
use crate::emulated::work::Work;
use crate::error::Error;
use crate::types::*;

/// A copy of a graph, with its nodes in an order.
pub(crate) struct Exec {
    graph: Arc<Graph>,
    order: Vec<Arc<Node>>,
    pub(crate) flags: u64,
    was_launched: AtomicBool,
}

/// Why a graph cannot take another one's parameters.
pub(crate) struct UpdateError {
    pub(crate) result: hipGraphExecUpdateResult,
    /// The node of the other graph that does not fit.
    pub(crate) node: Option<Arc<Node>>,
    pub(crate) problem: &'static str,
}

/// Where two graphs differ that should be alike.
enum Mismatch {
    Count,
    Kind(Arc<Node>),
    Edges(Arc<Node>),
}

/// A node, and the one that it takes its parameters from.
type Before = Arc<Node>;
type After = Arc<Node>;

/// Pairs the nodes of two graphs by their order: as many, of the same kinds, behind the same ones.
fn pairs(
    old: &Graph,
    new: &Graph,
    old_order: &[Arc<Node>],
    new_order: &[Arc<Node>],
) -> Result<Vec<(Before, After)>, Mismatch> {
    if old_order.len() != new_order.len() {
        return Err(Mismatch::Count);
    }
    let number = |order: &[Arc<Node>]| -> HashMap<u64, usize> {
        order.iter().enumerate().map(|(at, node)| (node.id, at)).collect()
    };
    let (old_numbers, new_numbers) = (number(old_order), number(new_order));
    let places = |numbers: &HashMap<u64, usize>, nodes: Vec<Arc<Node>>| {
        let mut places: Vec<_> = nodes.iter().map(|node| numbers.get(&node.id).copied()).collect();
        places.sort_unstable();
        places
    };
    let all = old_order.iter().zip(new_order).map(|(before, after)| {
        if before.kind() != after.kind() {
            return Err(Mismatch::Kind(after.clone()));
        }
        let edges =
            places(&old_numbers, old.dependencies(before)) == places(&new_numbers, new.dependencies(after));
        if edges { Ok((before.clone(), after.clone())) } else { Err(Mismatch::Edges(after.clone())) }
    });
    all.collect()
}

fn order(graph: &Graph) -> Result<Vec<Arc<Node>>, Error> {
    graph.order().map_err(|node| Error::Cycle { node: node.id, graph: graph.id })
}

impl Exec {
    pub(super) fn new(graph: &Arc<Graph>, flags: u64) -> Result<Exec, Error> {
        // Errors name the nodes that the program knows.
        check(graph)?;
        let graph = graph.copy();
        Ok(Exec { order: order(&graph)?, graph, flags, was_launched: AtomicBool::new(false) })
    }

    /// The node here that was made from a node of the graph.
    pub(crate) fn node(&self, of: &Node) -> Result<Arc<Node>, Error> {
        self.graph.find_copy(of).ok_or_else(|| Error::Argument {
            name: "node",
            value: format!("node {}", of.id),
            expected: "it must be a node of the graph that was instantiated",
        })
    }

    pub(crate) fn is_enabled(node: &Node) -> bool {
        node.is_enabled.load(Ordering::Relaxed)
    }

    pub(crate) fn set_enabled(node: &Node, on: bool) {
        node.is_enabled.store(on, Ordering::Relaxed);
    }

    /// Takes the parameters of a graph of the same shape; of another, nothing is taken.
    pub(crate) fn update(&self, graph: &Graph) -> Result<(), UpdateError> {
        let mut changes = Vec::new();
        collect(&self.graph, graph, &mut changes)?;
        for (node, work) in changes {
            node.set_work(work);
        }
        Ok(())
    }

    /// Takes the parameters of a graph for a node that is one.
    pub(crate) fn update_child(node: &Node, graph: &Graph) -> Result<(), UpdateError> {
        let Work::Graph(inner) = node.work() else {
            return Err(UpdateError {
                result: HIP_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED,
                node: None,
                problem: "the node is no graph",
            });
        };
        let mut changes = Vec::new();
        collect(&inner, graph, &mut changes)?;
        for (node, work) in changes {
            node.set_work(work);
        }
        Ok(())
    }

    /// The work of a launch, in order, or in one that the edges allow and that is drawn from a seed.
    fn work(&self, seed: Option<u64>) -> Vec<Work> {
        let mut all = Vec::new();
        match seed {
            None => append(&self.order, seed, &mut all),
            Some(seed) => append(&order_of(&self.graph, Some(seed)), Some(seed), &mut all),
        }
        all
    }
}

fn check(graph: &Graph) -> Result<(), Error> {
    for node in order(graph)? {
        if let Work::Graph(inner) = node.work() {
            check(&inner)?;
        }
    }
    Ok(())
}

/// The order of a graph that has one: it was checked when the graph was instantiated.
fn order_of(graph: &Graph, seed: Option<u64>) -> Vec<Arc<Node>> {
    seed.map_or_else(|| graph.order(), |seed| graph.drawn_order(seed)).unwrap_or_default()
}

fn append(order: &[Arc<Node>], seed: Option<u64>, all: &mut Vec<Work>) {
    for node in order.iter().filter(|node| Exec::is_enabled(node)) {
        match node.work() {
            Work::Graph(inner) => append(&order_of(&inner, seed), seed, all),
            Work::Values(values) => all.extend(values.ops.iter().map(|op| Work::Value(*op))),
            work => all.push(work),
        }
    }
}

/// The changes that make `old` do what `new` does.
fn collect(old: &Graph, new: &Graph, changes: &mut Vec<(Arc<Node>, Work)>) -> Result<(), UpdateError> {
    let topology =
        |node, problem| UpdateError { result: HIP_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node, problem };
    let circle = |node| topology(Some(node), "a node waits for itself");
    let (old_order, new_order) = (old.order().map_err(circle)?, new.order().map_err(circle)?);
    let pairs = pairs(old, new, &old_order, &new_order).map_err(|mismatch| match mismatch {
        Mismatch::Count => topology(None, "the graphs have different numbers of nodes"),
        Mismatch::Kind(node) => UpdateError {
            result: HIP_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED,
            node: Some(node),
            problem: "a node is of another kind",
        },
        Mismatch::Edges(node) => topology(Some(node), "a node waits for others than before"),
    })?;
    for (before, after) in pairs {
        let wrong = |result, problem| Err(UpdateError { result, node: Some(after.clone()), problem });
        match (before.work(), after.work()) {
            (Work::Graph(old), Work::Graph(new)) => collect(&old, &new, changes)?,
            (Work::Kernel(old), Work::Kernel(new)) if old.function.device != new.function.device => {
                let result = HIP_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
                return wrong(result, "a kernel is on another device");
            }
            (Work::Copy(old), Work::Copy(new)) if old.params.kind != new.params.kind => {
                let result = HIP_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
                return wrong(result, "a copy is of another kind");
            }
            (Work::Allocate(_) | Work::Free(_), _) => {
                return wrong(
                    HIP_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED,
                    "memory of a graph cannot be updated",
                );
            }
            (_, work) => changes.push((before, work)),
        }
    }
    Ok(())
}

impl Runtime {
    /// Launches a graph; into a stream that is being captured, as a node.
    ///
    /// # Safety
    /// What the graph's nodes have of the program's own is valid until they have run.
    pub(crate) unsafe fn launch_graph(&self, exec: &Exec, stream: &Arc<Stream>) -> Result<(), Error> {
        if self.record(stream, || Work::Graph(exec.graph.copy()))? {
            return Ok(());
        }
        let all = exec.work(self.devices[stream.device].options().shuffle);
        let is_freed = exec.flags & HIP_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH != 0;
        if exec.was_launched.swap(true, Ordering::Relaxed) {
            for work in &all {
                if let Work::Allocate(memory) = work
                    && memory.is_active()
                {
                    if !is_freed {
                        return Err(Error::GraphMemoryInUse { address: memory.base, size: memory.size });
                    }
                    memory.end();
                }
            }
        }
        // SAFETY: the caller's contract.
        unsafe { self.run(stream, &all) };
        Ok(())
    }
}
