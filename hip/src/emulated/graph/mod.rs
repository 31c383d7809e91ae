//! Graphs: work that is described once and launched many times.
//!
//! A graph has nodes, each with a piece of [`Work`], and edges between them. What is launched is an [`Exec`]: a copy of the
//! graph whose nodes have been put in an order. On an emulated device that is all: a launch goes through the list.

mod capture;
mod dot;
mod exec;
mod memory;
mod objects;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

pub use self::capture::CaptureError;
pub(crate) use self::capture::{Captured, Captures, Membership, Mode, exchange_mode};
pub(crate) use self::dot::DotFlags;
pub(crate) use self::exec::Exec;
pub(crate) use self::memory::{GraphMemories, GraphMemory};
pub(crate) use self::objects::Kept;
use super::Runtime;
use super::handles::Handles;
use super::work::Work;
use crate::error::Error;
use crate::types::*;

/// Numbers of graphs and nodes, never used twice.
fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A piece of work in a graph.
pub(crate) struct Node {
    pub(crate) id: u64,
    /// The node that this one is a copy of.
    origin: Option<u64>,
    graph: Weak<Graph>,
    handle: OnceLock<usize>,
    work: Mutex<Work>,
    /// Whether launches run it.
    is_enabled: AtomicBool,
}

impl Node {
    pub(crate) fn work(&self) -> Work {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_work(&self, work: Work) {
        *self.lock() = work;
    }

    /// Changes the work in place.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Work) -> T) -> T {
        change(&mut self.lock())
    }

    /// The graph that the node is in; none any more if that has been destroyed.
    pub(crate) fn graph(&self) -> Option<Arc<Graph>> {
        self.graph.upgrade()
    }

    /// The kind's number in HIP.
    pub(crate) fn kind(&self) -> hipGraphNodeType {
        match &*self.lock() {
            Work::Kernel(_) => HIP_GRAPH_NODE_TYPE_KERNEL,
            Work::Copy(_) => HIP_GRAPH_NODE_TYPE_MEMCPY,
            Work::Fill(_) => HIP_GRAPH_NODE_TYPE_MEMSET,
            Work::Host(_) => HIP_GRAPH_NODE_TYPE_HOST,
            Work::Graph(_) => HIP_GRAPH_NODE_TYPE_GRAPH,
            Work::Empty => HIP_GRAPH_NODE_TYPE_EMPTY,
            Work::Wait(_) => HIP_GRAPH_NODE_TYPE_WAIT_EVENT,
            Work::Record(_) => HIP_GRAPH_NODE_TYPE_EVENT_RECORD,
            Work::Allocate(_) => HIP_GRAPH_NODE_TYPE_MEM_ALLOC,
            Work::Free(_) => HIP_GRAPH_NODE_TYPE_MEM_FREE,
            Work::Values(_) | Work::Value(_) => HIP_GRAPH_NODE_TYPE_BATCH_MEM_OP,
            // It is no part of a graph.
            Work::Callback { .. } => HIP_GRAPH_NODE_TYPE_HOST,
        }
    }

    /// The handle, made when a program first gets to see it.
    pub(crate) fn handle(self: &Arc<Self>, handles: &Handles) -> *mut c_void {
        *self.handle.get_or_init(|| handles.insert(self.clone()) as usize) as *mut c_void
    }
}

#[derive(Default)]
struct Contents {
    /// In the order in which they were added.
    nodes: Vec<Arc<Node>>,
    /// By node: those that it waits for, in the order in which the edges were added.
    dependencies: HashMap<u64, Vec<Arc<Node>>>,
    /// By node: those that wait for it.
    dependents: HashMap<u64, Vec<Arc<Node>>>,
    /// What the graph keeps alive, and how many times over.
    objects: Vec<(Arc<Kept>, u32)>,
}

/// The second waits for the first.
pub(crate) type Edge = (Arc<Node>, Arc<Node>);

/// Nodes and edges.
pub(crate) struct Graph {
    pub(crate) id: u64,
    handle: OnceLock<usize>,
    contents: Mutex<Contents>,
    is_instantiated: AtomicBool,
}

impl Graph {
    pub(crate) fn new() -> Arc<Graph> {
        Arc::new(Graph {
            id: next_id(),
            handle: OnceLock::new(),
            contents: Mutex::default(),
            is_instantiated: AtomicBool::new(false),
        })
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handle, made when a program first gets to see it.
    pub(crate) fn handle(self: &Arc<Self>, handles: &Handles) -> *mut c_void {
        *self.handle.get_or_init(|| handles.insert(self.clone()) as usize) as *mut c_void
    }

    /// Whether a node is in this graph.
    pub(crate) fn contains(self: &Arc<Self>, node: &Node) -> bool {
        node.graph.ptr_eq(&Arc::downgrade(self)) && self.contents().dependencies.contains_key(&node.id)
    }

    /// Adds a node behind others of this graph; those that are not in it (any more) are left out.
    pub(crate) fn add(self: &Arc<Self>, work: Work, dependencies: &[Arc<Node>]) -> Arc<Node> {
        self.add_copy(work, dependencies, None)
    }

    fn add_copy(
        self: &Arc<Self>,
        work: Work,
        dependencies: &[Arc<Node>],
        origin: Option<&Node>,
    ) -> Arc<Node> {
        let node = Arc::new(Node {
            id: next_id(),
            origin: origin.map(|node| node.id),
            graph: Arc::downgrade(self),
            handle: OnceLock::new(),
            work: Mutex::new(work),
            is_enabled: AtomicBool::new(origin.is_none_or(|node| node.is_enabled.load(Ordering::Relaxed))),
        });
        let mut contents = self.contents();
        let mut found = Vec::with_capacity(dependencies.len());
        for dependency in dependencies {
            if let Some(dependents) = contents.dependents.get_mut(&dependency.id) {
                dependents.push(node.clone());
                found.push(dependency.clone());
            }
        }
        contents.dependencies.insert(node.id, found);
        contents.dependents.insert(node.id, Vec::new());
        contents.nodes.push(node.clone());
        node
    }

    /// Takes a node and its edges out, and ends its handle.
    pub(crate) fn remove(&self, node: &Arc<Node>, handles: &Handles) {
        let mut contents = self.contents();
        contents.nodes.retain(|other| other.id != node.id);
        let around = [contents.dependencies.remove(&node.id), contents.dependents.remove(&node.id)];
        for other in around.into_iter().flatten().flatten() {
            let Contents { dependencies, dependents, .. } = &mut *contents;
            for edges in [dependencies, dependents] {
                if let Some(edges) = edges.get_mut(&other.id) {
                    edges.retain(|end| end.id != node.id);
                }
            }
        }
        drop(contents);
        end_node(node, handles);
    }

    /// Adds edges. Nothing is added if one of them is there already, or leads from a node to itself.
    pub(crate) fn connect(&self, edges: &[Edge]) -> Result<(), Error> {
        let mut contents = self.contents();
        for (index, (from, to)) in edges.iter().enumerate() {
            let is_twice = edges[..index].iter().any(|(f, t)| f.id == from.id && t.id == to.id);
            let known =
                contents.dependents.get(&from.id).is_some_and(|nodes| nodes.iter().any(|n| n.id == to.id));
            if from.id == to.id || is_twice || known {
                return Err(Error::Argument {
                    name: "to",
                    value: format!("edge {index}"),
                    expected: "an edge leads from one node to another, and is there once",
                });
            }
        }
        for (from, to) in edges {
            contents.dependents.entry(from.id).or_default().push(to.clone());
            contents.dependencies.entry(to.id).or_default().push(from.clone());
        }
        Ok(())
    }

    /// Takes edges out. Nothing is taken out if one of them is not there.
    pub(crate) fn disconnect(&self, edges: &[Edge]) -> Result<(), Error> {
        let mut contents = self.contents();
        for (index, (from, to)) in edges.iter().enumerate() {
            let known =
                contents.dependents.get(&from.id).is_some_and(|nodes| nodes.iter().any(|n| n.id == to.id));
            if !known {
                return Err(Error::Argument {
                    name: "to",
                    value: format!("edge {index}"),
                    expected: "it must be an edge of the graph",
                });
            }
        }
        for (from, to) in edges {
            contents.dependents.entry(from.id).or_default().retain(|node| node.id != to.id);
            contents.dependencies.entry(to.id).or_default().retain(|node| node.id != from.id);
        }
        Ok(())
    }

    /// All nodes, in the order in which they were added.
    pub(crate) fn nodes(&self) -> Vec<Arc<Node>> {
        self.contents().nodes.clone()
    }

    /// The nodes that wait for none.
    pub(crate) fn roots(&self) -> Vec<Arc<Node>> {
        let contents = self.contents();
        let is_root = |node: &&Arc<Node>| contents.dependencies.get(&node.id).is_none_or(Vec::is_empty);
        contents.nodes.iter().filter(is_root).cloned().collect()
    }

    /// The nodes that none waits for.
    pub(crate) fn leaves(&self) -> Vec<Arc<Node>> {
        let contents = self.contents();
        let is_leaf = |node: &&Arc<Node>| contents.dependents.get(&node.id).is_none_or(Vec::is_empty);
        contents.nodes.iter().filter(is_leaf).cloned().collect()
    }

    pub(crate) fn dependencies(&self, node: &Node) -> Vec<Arc<Node>> {
        self.contents().dependencies.get(&node.id).cloned().unwrap_or_default()
    }

    pub(crate) fn dependents(&self, node: &Node) -> Vec<Arc<Node>> {
        self.contents().dependents.get(&node.id).cloned().unwrap_or_default()
    }

    pub(crate) fn edges(&self) -> Vec<Edge> {
        let contents = self.contents();
        let of = |node: &Arc<Node>| contents.dependents.get(&node.id).cloned().unwrap_or_default();
        contents.nodes.iter().flat_map(|from| of(from).into_iter().map(|to| (from.clone(), to))).collect()
    }

    /// The nodes so that each comes behind those that it waits for; of those that could come next, the one that was added
    /// first. The error is a node that waits for itself by way of others.
    pub(crate) fn order(&self) -> Result<Vec<Arc<Node>>, Arc<Node>> {
        let mut ready = BinaryHeap::new();
        self.sort(|next| match next {
            Some(at) => {
                ready.push(Reverse(at));
                None
            }
            None => ready.pop().map(|Reverse(at)| at),
        })
    }

    /// As [`Graph::order`], with a random one of those that could come next.
    pub(crate) fn drawn_order(&self, seed: u64) -> Result<Vec<Arc<Node>>, Arc<Node>> {
        let mut ready = Vec::new();
        let mut state = seed;
        self.sort(|next| match next {
            Some(at) => {
                ready.push(at);
                None
            }
            None if ready.is_empty() => None,
            None => {
                // SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
                Some(ready.swap_remove(((mixed ^ mixed >> 31) % ready.len() as u64) as usize))
            }
        })
    }

    /// Sorts the nodes. `ready` is told of each one, by its place, when it could come next, and asked which of them does.
    fn sort(
        &self,
        mut ready: impl FnMut(Option<usize>) -> Option<usize>,
    ) -> Result<Vec<Arc<Node>>, Arc<Node>> {
        let contents = self.contents();
        let place: HashMap<u64, usize> =
            contents.nodes.iter().enumerate().map(|(at, node)| (node.id, at)).collect();
        let waits_for = |node: &Arc<Node>| contents.dependencies.get(&node.id).map_or(0, Vec::len);
        let mut open: Vec<usize> = contents.nodes.iter().map(waits_for).collect();
        for at in (0..open.len()).filter(|&at| open[at] == 0) {
            ready(Some(at));
        }
        let mut order = Vec::with_capacity(open.len());
        while let Some(at) = ready(None) {
            let node = &contents.nodes[at];
            order.push(node.clone());
            for next in contents.dependents.get(&node.id).into_iter().flatten() {
                let next = place[&next.id];
                open[next] -= 1;
                if open[next] == 0 {
                    ready(Some(next));
                }
            }
        }
        match open.iter().position(|&count| count > 0) {
            Some(at) => Err(contents.nodes[at].clone()),
            None => Ok(order),
        }
    }

    /// A copy with nodes of its own, down to those of graphs inside.
    pub(crate) fn copy(self: &Arc<Self>) -> Arc<Graph> {
        let copy = Graph::new();
        let mut copies = HashMap::new();
        for node in self.nodes() {
            let work = match node.work() {
                Work::Graph(inner) => Work::Graph(inner.copy()),
                work => work,
            };
            copies.insert(node.id, copy.add_copy(work, &[], Some(&node)));
        }
        let edges: Vec<_> = self
            .edges()
            .into_iter()
            .filter_map(|(from, to)| Some((copies.get(&from.id)?.clone(), copies.get(&to.id)?.clone())))
            .collect();
        // The edges of a graph are right, and so are those of its copy.
        drop(copy.connect(&edges));
        let objects = self.contents().objects.clone();
        for (object, count) in &objects {
            object.retain(*count);
        }
        copy.contents().objects = objects;
        copy
    }

    /// The copy of a node in this graph, or in a graph inside it.
    pub(crate) fn find_copy(&self, of: &Node) -> Option<Arc<Node>> {
        self.nodes().into_iter().find_map(|node| {
            if node.origin == Some(of.id) {
                return Some(node);
            }
            match &*node.lock() {
                Work::Graph(inner) => inner.find_copy(of),
                _ => None,
            }
        })
    }

    /// Whether the graph has memory of its own, also in graphs inside.
    pub(crate) fn has_memory(&self) -> bool {
        self.nodes().iter().any(|node| match &*node.lock() {
            Work::Allocate(_) | Work::Free(_) => true,
            Work::Graph(inner) => inner.has_memory(),
            _ => false,
        })
    }

    /// Lets the graph keep something alive.
    pub(crate) fn keep(&self, object: Arc<Kept>, count: u32) {
        let mut contents = self.contents();
        match contents.objects.iter_mut().find(|(other, _)| Arc::ptr_eq(other, &object)) {
            Some((_, held)) => *held = held.saturating_add(count),
            None => contents.objects.push((object, count)),
        }
    }

    /// Undoes [`Graph::keep`]; the result is by how much.
    pub(crate) fn let_go(&self, object: &Arc<Kept>, count: u32) -> u32 {
        let mut contents = self.contents();
        let Some(at) = contents.objects.iter().position(|(other, _)| Arc::ptr_eq(other, object)) else {
            return 0;
        };
        let gone = contents.objects[at].1.min(count);
        contents.objects[at].1 -= gone;
        if contents.objects[at].1 == 0 {
            contents.objects.remove(at);
        }
        gone
    }

    /// Ends the handles of the graph, of its nodes and of the graphs inside.
    pub(crate) fn end(&self, handles: &Handles) {
        if let Some(handle) = self.handle.get() {
            drop(handles.remove::<Graph>(*handle as *mut c_void));
        }
        for node in self.nodes() {
            end_node(&node, handles);
        }
    }
}

fn end_node(node: &Node, handles: &Handles) {
    if let Some(handle) = node.handle.get() {
        drop(handles.remove::<Node>(*handle as *mut c_void));
    }
    // The lock must not be held where a graph's end calls the program back.
    if let Work::Graph(inner) = node.work() {
        inner.end(handles);
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let contents = self.contents.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (object, count) in contents.objects.drain(..) {
            object.release(count);
        }
    }
}

impl Runtime {
    /// Makes a graph that can be launched. The error names a node that waits for itself.
    pub(crate) fn instantiate(&self, graph: &Arc<Graph>, flags: u64) -> Result<Arc<Exec>, Error> {
        let was = graph.is_instantiated.load(Ordering::Relaxed);
        if was && graph.has_memory() {
            return Err(Error::Unsupported("a graph with memory of its own is instantiated once".to_owned()));
        }
        let exec = Exec::new(graph, flags)?;
        graph.is_instantiated.store(true, Ordering::Relaxed);
        Ok(Arc::new(exec))
    }
}
