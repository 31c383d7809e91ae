//! The driver's topology as files: what `/sys/devices/virtual/kfd/kfd/topology` has, without a file anywhere.
//!
//! Node 0 is the processor, each further node an emulated card.

use std::fmt::Write;

use amdgpu_emulator::{Generation, Gfx};

use crate::card::Card;

/// The first minor number of render nodes.
pub const FIRST_RENDER: u32 = 128;
/// The folder, under its two names.
const ROOTS: [&str; 2] = ["/sys/devices/virtual/kfd/kfd/topology", "/sys/class/kfd/kfd/topology"];

/// What a path leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    /// A file with this text.
    File(String),
    /// A folder with these names.
    Folder(Vec<String>),
}

/// Whether a path lies in the topology, or tells that the driver is there.
pub fn covers(path: &str) -> bool {
    ROOTS.iter().any(|root| path.starts_with(root)) || path == MODULES || path.starts_with(MODULE)
}

/// The list of the kernel's modules, which has to name the driver.
const MODULES: &str = "/proc/modules";
const MODULE: &str = "/sys/module/amdgpu";

/// What is at a path that [`covers`] is true of; `None` if there is nothing. `modules` reads the system's own list of modules.
pub fn entry(cards: &[Card], path: &str, modules: impl FnOnce() -> String) -> Option<Entry> {
    if path == MODULES {
        let others = modules();
        let others = others.lines().filter(|line| !line.starts_with("amdgpu "));
        let own = "amdgpu 1 0 - Live 0x0000000000000000";
        return Some(Entry::File(others.chain([own]).map(|line| format!("{line}\n")).collect()));
    }
    if let Some(rest) = path.strip_prefix(MODULE) {
        return match rest.trim_matches('/') {
            "" => Some(Entry::Folder(vec!["holders".into(), "initstate".into()])),
            "holders" => Some(Entry::Folder(Vec::new())),
            "initstate" => Some(Entry::File("live\n".into())),
            _ => None,
        };
    }
    let rest = ROOTS.iter().find_map(|root| path.strip_prefix(root))?;
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    let names = |names: &[&str]| Some(Entry::Folder(names.iter().map(|&name| name.into()).collect()));
    let numbers = |count: usize| Some(Entry::Folder((0..count).map(|n| n.to_string()).collect()));
    match parts.as_slice() {
        [] => names(&["generation_id", "nodes", "system_properties"]),
        ["generation_id"] => Some(Entry::File("1\n".into())),
        ["system_properties"] => Some(Entry::File("platform_oem 0\nplatform_id 0\nplatform_rev 0\n".into())),
        ["nodes"] => numbers(cards.len() + 1),
        ["nodes", node, rest @ ..] => {
            let node: usize = node.parse().ok().filter(|&node| node <= cards.len())?;
            let files = Node { cards, node };
            match rest {
                [] => names(&["caches", "gpu_id", "io_links", "mem_banks", "name", "properties"]),
                ["gpu_id"] => Some(Entry::File(format!("{}\n", files.gpu_id()))),
                ["name"] => Some(Entry::File(format!("{}\n", files.name()))),
                ["properties"] => Some(Entry::File(files.properties())),
                ["mem_banks"] => numbers(1),
                ["caches"] => numbers(files.caches().len()),
                ["io_links"] => numbers(files.links().len()),
                ["mem_banks", "0"] | ["caches" | "io_links", _] => names(&["properties"]),
                ["mem_banks", "0", "properties"] => Some(Entry::File(files.memory())),
                ["caches", n, "properties"] => {
                    files.caches().into_iter().nth(n.parse().ok()?).map(Entry::File)
                }
                ["io_links", n, "properties"] => {
                    files.links().into_iter().nth(n.parse().ok()?).map(Entry::File)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// The number by which ioctls name a card.
pub fn gpu_id(device: usize) -> u32 {
    0x1000 + device as u32 * 0x111
}

struct Node<'a> {
    cards: &'a [Card],
    node: usize,
}

fn lines(pairs: &[(&str, u64)]) -> String {
    pairs.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name} {value}");
        text
    })
}

impl Node<'_> {
    fn card(&self) -> Option<&Card> {
        self.node.checked_sub(1).map(|device| &self.cards[device])
    }

    fn gpu_id(&self) -> u32 {
        self.node.checked_sub(1).map_or(0, gpu_id)
    }

    fn name(&self) -> String {
        self.card().map_or_else(String::new, |card| card.gfx.name().to_owned())
    }

    fn properties(&self) -> String {
        let Some(card) = self.card() else {
            return lines(&[
                ("cpu_cores_count", processors()),
                ("simd_count", 0),
                ("mem_banks_count", 1),
                ("caches_count", self.caches().len() as u64),
                ("io_links_count", self.links().len() as u64),
                ("cpu_core_id_base", 0),
                ("capability", 0),
                ("max_waves_per_simd", 0),
                ("lds_size_in_kb", 0),
                ("wave_front_size", 0),
                ("array_count", 0),
                ("vendor_id", 0),
                ("device_id", 0),
                ("location_id", 0),
                ("drm_render_minor", 0),
                ("max_engine_clk_ccompute", 3000),
            ]);
        };
        let specs = &card.specs;
        let device = self.node as u64 - 1;
        let per_array = card.compute_units / card.arrays;
        lines(&[
            ("cpu_cores_count", 0),
            ("simd_count", u64::from(card.compute_units * card.simds)),
            ("mem_banks_count", 1),
            ("caches_count", self.caches().len() as u64),
            ("io_links_count", self.links().len() as u64),
            ("cpu_core_id_base", 0),
            ("simd_id_base", (1 << 31) + device * 0x1000),
            ("max_waves_per_simd", u64::from(specs.waves_per_simd)),
            ("lds_size_in_kb", u64::from(card.gfx.lds_limit() / 1024)),
            ("gds_size_in_kb", 0),
            ("num_gws", 64),
            ("wave_front_size", u64::from(card.gfx.wave_size())),
            ("array_count", u64::from(card.arrays)),
            ("simd_arrays_per_engine", u64::from(card.arrays_per_engine)),
            ("cu_per_simd_array", u64::from(per_array)),
            ("simd_per_cu", u64::from(card.simds)),
            ("max_slots_scratch_cu", 32),
            ("gfx_target_version", u64::from(card.version())),
            ("vendor_id", 0x1002),
            ("device_id", u64::from(card.device_id)),
            ("location_id", (0x3 + device) << 8),
            ("domain", 0),
            ("drm_render_minor", u64::from(FIRST_RENDER) + device),
            // Cards that are linked are a hive.
            ("hive_id", if self.peers().is_empty() { 0 } else { 0x454d_5501 }),
            ("num_sdma_engines", 2),
            ("num_sdma_xgmi_engines", if self.peers().is_empty() { 0 } else { 3 }),
            ("num_sdma_queues_per_engine", 8),
            ("num_cp_queues", 24),
            ("max_engine_clk_fcompute", u64::from(specs.clock_khz / 1000)),
            ("local_mem_size", 0),
            ("fw_version", 0x1ff),
            ("capability", u64::from(card.capability())),
            ("debug_prop", 0),
            ("sdma_fw_version", 0x1ff),
            ("unique_id", 0x454d_5500_0000_0000 | device),
            ("max_engine_clk_ccompute", 3000),
        ])
    }

    fn memory(&self) -> String {
        // The heap of a card is one that the host does not see.
        const HEAP_SYSTEM: u64 = 0;
        const HEAP_FRAME_BUFFER_PRIVATE: u64 = 2;
        let (heap, size, width, clock) = match self.card() {
            Some(card) => {
                let specs = &card.specs;
                (
                    HEAP_FRAME_BUFFER_PRIVATE,
                    card.memory_bytes(),
                    specs.memory_bus_bits,
                    specs.memory_clock_khz / 1000,
                )
            }
            None => (HEAP_SYSTEM, system_memory(), 64, 1600),
        };
        lines(&[
            ("heap_type", heap),
            ("size_in_bytes", size),
            ("flags", 0),
            ("width", u64::from(width)),
            ("mem_clk_max", u64::from(clock)),
        ])
    }

    fn caches(&self) -> Vec<String> {
        const DATA: u64 = 1;
        const OF_CPU: u64 = 4;
        const OF_GPU: u64 = 8;
        let cache = |level: u64, kib: u64, line: u64, kind: u64| {
            lines(&[
                (
                    "processor_id_low",
                    if self.node == 0 { 0 } else { (1 << 31) + (self.node as u64 - 1) * 0x1000 },
                ),
                ("level", level),
                ("size", kib),
                ("cache_line_size", line),
                ("cache_lines_per_tag", 1),
                ("association", 16),
                ("latency", 0),
                ("type", kind),
            ])
        };
        match self.card() {
            Some(card) => {
                let line = card.gfx.cache_line();
                vec![
                    cache(1, 16, line, DATA | OF_GPU),
                    cache(2, u64::from(card.specs.l2_bytes / 1024), 128, DATA | OF_GPU),
                ]
            }
            None => vec![cache(1, 32, 64, DATA | OF_CPU)],
        }
    }

    /// The nodes of cards that this one's kernels reach directly: of one target that is made for it.
    fn peers(&self) -> Vec<usize> {
        let Some(card) = self.card() else { return Vec::new() };
        let linked = card.gfx.generation() == Generation::Cdna && card.gfx != Gfx::Gfx906;
        let is_peer = |node: &usize| *node != self.node && linked && self.cards[*node - 1].gfx == card.gfx;
        (1..=self.cards.len()).filter(is_peer).collect()
    }

    /// Each card is linked to the processor by PCI express, and to its peers by XGMI. There is no link the other way: by one the runtime knows cards whose
    /// memory the host sees, and would write to it without a command.
    fn links(&self) -> Vec<String> {
        const PCI_EXPRESS: u64 = 2;
        const XGMI: u64 = 11;
        let link = |to: usize, kind: u64| {
            lines(&[
                ("type", kind),
                ("version_major", 0),
                ("version_minor", 0),
                ("node_from", self.node as u64),
                ("node_to", to as u64),
                ("weight", if kind == XGMI { 15 } else { 20 }),
                ("min_latency", 0),
                ("max_latency", 0),
                ("min_bandwidth", 312),
                ("max_bandwidth", 32_000),
                ("recommended_transfer_size", 0),
                ("flags", 1),
            ])
        };
        match self.node {
            0 => Vec::new(),
            _ => {
                let peers = self.peers().into_iter().map(|peer| link(peer, XGMI));
                std::iter::once(link(0, PCI_EXPRESS)).chain(peers).collect()
            }
        }
    }
}

fn processors() -> u64 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u64)
}

fn system_memory() -> u64 {
    // SAFETY: no pointers are involved.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    pages.max(0) as u64 * size.max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> Option<Entry> {
        let cards = [Card::of(Gfx::Gfx90a), Card::of(Gfx::Gfx1030)];
        entry(&cards, path, || "other 1 0 - Live 0x0\n".into())
    }

    fn file(path: &str) -> String {
        match at(path) {
            Some(Entry::File(text)) => text,
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn every_listed_name_leads_somewhere() {
        let mut open = vec![ROOTS[0].to_owned()];
        let mut files = 0;
        while let Some(path) = open.pop() {
            match at(&path) {
                Some(Entry::Folder(names)) => open.extend(names.iter().map(|name| format!("{path}/{name}"))),
                Some(Entry::File(_)) => files += 1,
                None => panic!("{path}"),
            }
        }
        assert_eq!(files, 2 + 3 * 4 + (1 + 2 + 2) + (1 + 1));
    }

    #[test]
    fn counts_agree_with_folders() {
        let root = format!("{}/nodes/", ROOTS[1]);
        for node in 0..3 {
            let text = file(&format!("{root}{node}/properties"));
            let value = |name: &str| -> usize {
                let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
                line.trim().parse().unwrap()
            };
            for (count, folder) in
                [("caches_count", "caches"), ("io_links_count", "io_links"), ("mem_banks_count", "mem_banks")]
            {
                let Some(Entry::Folder(names)) = at(&format!("{root}{node}/{folder}")) else { panic!() };
                assert_eq!(names.len(), value(count), "{node} {folder}");
            }
        }
        assert!(at(&format!("{root}3/gpu_id")).is_none());
        assert_ne!(file(&format!("{root}1/gpu_id")), file(&format!("{root}2/gpu_id")));
    }

    #[test]
    fn cards_of_one_target_are_linked() {
        let cards = [Gfx::Gfx90a, Gfx::Gfx1030, Gfx::Gfx90a, Gfx::Gfx1030].map(Card::of);
        let links = |node: usize| {
            let links = Node { cards: &cards, node }.links();
            let to =
                |link: &String| link.lines().find_map(|line| line.strip_prefix("node_to ")?.parse().ok());
            links.iter().map(|link| to(link).unwrap()).collect::<Vec<usize>>()
        };
        assert_eq!([0, 1, 2, 3, 4].map(links), [vec![], vec![0, 3], vec![0], vec![0, 1], vec![0]]);
    }

    #[test]
    fn the_driver_is_among_the_modules() {
        assert_eq!(file("/proc/modules"), "other 1 0 - Live 0x0\namdgpu 1 0 - Live 0x0000000000000000\n");
        assert_eq!(file("/sys/module/amdgpu/initstate"), "live\n");
        assert!(!covers("/sys/module/nvme/initstate") && covers("/sys/class/kfd/kfd/topology/nodes"));
    }
}
