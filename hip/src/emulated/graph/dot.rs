//! A graph as text for Graphviz.

use std::fmt::{self, Write};
use std::sync::Arc;

use super::{Graph, Node};
use crate::emulated::handles::Handles;
use crate::emulated::memory::Region;
use crate::emulated::work::Work;
use crate::types::*;

/// What a program asks to see beside the nodes' names; all of it for bit 0.
#[derive(Clone, Copy)]
pub(crate) struct DotFlags(pub(crate) u32);

impl DotFlags {
    fn has(self, bit: u32) -> bool {
        self.0 & (1 | 1 << bit) != 0
    }
}

/// Bits of `hipGraphDebugDotFlags`.
mod bit {
    pub const KERNEL: u32 = 2;
    pub const COPY: u32 = 3;
    pub const FILL: u32 = 4;
    pub const HOST: u32 = 5;
    pub const EVENT: u32 = 6;
    pub const ATTRIBUTES: u32 = 9;
    pub const HANDLES: u32 = 10;
}

impl Graph {
    /// The graph and those inside it, a cluster each.
    pub(crate) fn dot(self: &Arc<Self>, flags: DotFlags, handles: &Handles) -> String {
        let mut text = "digraph dot {\n".to_owned();
        // Writing to a string does not fail.
        let _ = self.cluster(&mut text, flags, handles);
        text.push_str("}\n");
        text
    }

    fn cluster(self: &Arc<Self>, to: &mut String, flags: DotFlags, handles: &Handles) -> fmt::Result {
        let graph = self.id;
        writeln!(to, "subgraph cluster_{graph} {{\nlabel=\"graph_{graph}\" graph[style=\"dashed\"];")?;
        let nodes = self.nodes();
        for (index, node) in nodes.iter().enumerate() {
            let (shape, label) = node.label(flags, handles);
            let label = label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let node = node.id;
            writeln!(
                to,
                "\"graph_{graph}_node_{node}\"[style=\"solid\" shape=\"{shape}\" label=\"{index}\\n{label}\"];"
            )?;
        }
        for (from, end) in self.edges() {
            writeln!(to, "\"graph_{graph}_node_{}\" -> \"graph_{graph}_node_{}\";", from.id, end.id)?;
        }
        to.push_str("}\n");
        for node in nodes {
            if let Work::Graph(inner) = node.work() {
                inner.cluster(to, flags, handles)?;
            }
        }
        Ok(())
    }
}

fn kind(kind: hipMemcpyKind) -> &'static str {
    match kind {
        HIP_MEMCPY_HOST_TO_HOST => "HtoH",
        HIP_MEMCPY_HOST_TO_DEVICE => "HtoD",
        HIP_MEMCPY_DEVICE_TO_HOST => "DtoH",
        HIP_MEMCPY_DEVICE_TO_DEVICE | HIP_MEMCPY_DEVICE_TO_DEVICE_NO_CU => "DtoD",
        _ => "default",
    }
}

fn region(what: &str, region: &Region) -> String {
    let Region { address, pitch, xsize, ysize, at, array } = region;
    if let Some(array) = array {
        return format!("\n{what} array {:#x}, at {at:?}", array.handle);
    }
    format!("\n{what} {address:#x}, pitch {pitch}, xsize {xsize}, ysize {ysize}, at {at:?}")
}

impl Node {
    /// The shape of the node's box, and what it says.
    fn label(self: &Arc<Self>, flags: DotFlags, handles: &Handles) -> (&'static str, String) {
        let (shape, mut label) = match self.work() {
            Work::Kernel(kernel) => {
                let mut label = format!("KERNEL\n{}", kernel.function.info.name);
                if flags.has(bit::KERNEL) {
                    let geometry = kernel.geometry;
                    label += &format!(
                        "\ngrid {:?}, block {:?}, LDS {}",
                        geometry.grid, geometry.block, geometry.dynamic_lds
                    );
                }
                if flags.has(bit::ATTRIBUTES) {
                    let attributes = kernel.attributes;
                    label += &format!(
                        "\ncooperative {}, priority {}",
                        attributes.is_cooperative, attributes.priority
                    );
                }
                if flags.has(bit::HANDLES) {
                    label += &format!("\nfunction {:#x}", kernel.name);
                }
                ("octagon", label)
            }
            Work::Copy(copy) => {
                let params = copy.params;
                let mut label = format!("MEMCPY\n{}, {:?}", kind(params.kind), params.extent);
                if flags.has(bit::COPY) {
                    label += &region("src", &params.src);
                    label += &region("dst", &params.dst);
                }
                ("trapezium", label)
            }
            Work::Fill(fill) => {
                let params = fill.params;
                let mut label =
                    format!("MEMSET\n{:?} of {} bytes to {:#x}", params.extent, params.element, params.value);
                if flags.has(bit::FILL) {
                    label += &format!("\ndst {:#x}, pitch {}", params.dst, params.pitch);
                }
                ("invtrapezium", label)
            }
            Work::Host(call) => {
                let mut label = "HOST".to_owned();
                if flags.has(bit::HOST) {
                    label += &format!("\nfn {:p}, data {:#x}", call.function as *const (), call.data);
                }
                ("diamond", label)
            }
            Work::Graph(inner) => ("rect", format!("GRAPH\ngraph_{}", inner.id)),
            Work::Callback { .. } => ("diamond", "CALLBACK".to_owned()),
            Work::Value(op) => ("rect", format!("VALUE\n{op:x?}")),
            Work::Values(values) => (
                "rect",
                values.ops.iter().fold("BATCH_MEM_OP".to_owned(), |text, op| format!("{text}\n{op:x?}")),
            ),
            Work::Empty => ("ellipse", "EMPTY".to_owned()),
            Work::Wait(used) => ("rect", event("EVENT_WAIT", used.handle, flags)),
            Work::Record(used) => ("rect", event("EVENT_RECORD", used.handle, flags)),
            Work::Allocate(memory) => {
                ("rect", format!("MEM_ALLOC\n{} bytes at {:#x}", memory.size, memory.base))
            }
            Work::Free(memory) => ("rect", format!("MEM_FREE\n{:#x}", memory.base)),
        };
        if flags.has(bit::HANDLES) {
            label += &format!("\nnode {:#x}", self.handle(handles) as usize);
        }
        (shape, label)
    }
}

fn event(what: &str, handle: usize, flags: DotFlags) -> String {
    if flags.has(bit::EVENT) { format!("{what}\nevent {handle:#x}") } else { what.to_owned() }
}
