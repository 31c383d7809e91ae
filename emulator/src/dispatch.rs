//! From a launch to waves: what the command processor and the dispatcher do.

use std::cell::RefCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::code_object::{ArgKind, HiddenArg, KernelDescriptor, KernelInfo};
use crate::exec::check::{Around, Check, Registers};
use crate::exec::op::{Dst, Unit};
use crate::exec::wave::slot;
use crate::exec::{Code, Env, Flow, Wave};
use crate::fault::{Fault, FaultReport, Site};
use crate::gfx::{Generation, Gfx};
use crate::machine::{Kernel, Launch};
use crate::memory::{CellMap, Memory};
use crate::profile::{Counts, InstructionProfile, Profile};
use crate::report::Report;

/// Address bits 63:32 of the windows through which FLAT instructions reach LDS and scratch.
const SHARED_APERTURE: u32 = 0x0001_0000;
const PRIVATE_APERTURE: u32 = 0x0002_0000;
/// Instructions that a wave executes before the next one has its turn.
const TURN: u64 = 1 << 16;
/// Bytes behind the arguments: scalar loads may be widened past the last one.
const KERNARG_PADDING: u64 = 64;
const PACKET_SIZE: u64 = 64;
const QUEUE_SIZE: u64 = 256;

/// Everything about a launch that its workgroups share.
struct Dispatch<'a> {
    kernel: &'a Kernel,
    code: &'a Code,
    info: &'a KernelInfo,
    gfx: Gfx,
    launch: &'a Launch<'a>,
    memory: &'a Memory,
    work_items: u32,
    lds: u32,
    /// Bytes of scratch per lane.
    scratch: u32,
    entry: u32,
    kernarg: u64,
    packet: u64,
    queue: u64,
    /// Dwords of arguments that go to scalar registers.
    preloaded: Vec<u32>,
}

/// Runs a launch.
pub(crate) fn launch(memory: &Memory, kernel: &Kernel, launch: &Launch<'_>) -> Result<Report, FaultReport> {
    let info = kernel.info();
    let gfx = kernel.module().object.gfx();
    let refuse = |fault: Fault| FaultReport::new(fault, &info.name, gfx, None);
    let (lds, work_items) = check_geometry(info, gfx, launch).map_err(refuse)?;

    let kernarg_bytes = u64::from(info.kernarg_size) + KERNARG_PADDING;
    let block = kernarg_bytes.next_multiple_of(64);
    let size = block + PACKET_SIZE + QUEUE_SIZE;
    let kernarg = memory.take_block(size).map_err(|error| refuse(Fault::Memory(error)))?;
    let (packet, queue) = (kernarg + block, kernarg + block + PACKET_SIZE);
    let arguments = arguments(info, launch);
    let written = memory
        .fill(kernarg, 0, size)
        .and_then(|()| memory.write(kernarg, &arguments))
        .and_then(|()| memory.write(packet, &packet_bytes(info, launch, lds, kernarg)))
        .and_then(|()| memory.write(queue, &queue_bytes()));

    let descriptor = &info.descriptor;
    let preloads = preload_count(gfx, descriptor);
    let preloaded = (0..preloads)
        .map(|n| {
            let at = (usize::from(descriptor.preload >> 7) + n) * 4;
            arguments
                .get(at..at + 4)
                .map_or(0, |bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        })
        .collect();
    // With preloaded arguments the first 256 bytes load them, for firmware that cannot preload.
    let entry = descriptor.entry + if preloads != 0 { 256 } else { 0 };
    let result = written.map_err(|error| refuse(Fault::Memory(error))).and_then(|()| {
        let code = kernel.code();
        let entry = code.index_of(entry);
        let entry = entry.ok_or_else(|| refuse(Fault::IllegalPc { pc: descriptor.entry }))?;
        let scratch = if info.dynamic_stack { info.scratch_size.max(16 << 10) } else { info.scratch_size };
        let dispatch = Dispatch {
            kernel,
            code: &code,
            info,
            gfx,
            launch,
            memory,
            work_items,
            lds,
            scratch: scratch.next_multiple_of(16),
            entry,
            kernarg,
            packet,
            queue,
            preloaded,
        };
        dispatch.run()
    });
    memory.give_block_back(kernarg, size);
    result
}

/// LDS bytes and work-items of a workgroup.
fn check_geometry(info: &KernelInfo, gfx: Gfx, launch: &Launch<'_>) -> Result<(u32, u32), Fault> {
    let Launch { grid, block, dynamic_lds, kernarg, .. } = *launch;
    let work_items: u64 = block.iter().map(|&n| u64::from(n)).product();
    if grid.contains(&0)
        || block.contains(&0)
        || grid
            .iter()
            .zip(&block)
            .any(|(&grid, &block)| u64::from(grid) * u64::from(block) > u64::from(u32::MAX))
        || grid.iter().try_fold(1u64, |product, &n| product.checked_mul(u64::from(n))).is_none()
    {
        return Err(Fault::Geometry { grid, block });
    }
    if block.iter().any(|&n| n > 1024) || work_items > u64::from(info.max_workgroup_size) {
        return Err(Fault::WorkgroupSize { size: work_items, limit: info.max_workgroup_size });
    }
    let lds = u64::from(info.lds_size) + u64::from(dynamic_lds);
    if lds > u64::from(gfx.lds_limit()) {
        return Err(Fault::LdsSize { bytes: lds, limit: gfx.lds_limit() });
    }
    if kernarg.len() < info.explicit_size() as usize {
        return Err(Fault::Arguments { given: kernarg.len(), needed: info.explicit_size() });
    }
    Ok((lds as u32, work_items as u32))
}

/// The argument block: explicit arguments as given, hidden ones filled in.
fn arguments(info: &KernelInfo, launch: &Launch<'_>) -> Vec<u8> {
    let mut bytes = vec![0; info.kernarg_size as usize];
    let explicit = (info.explicit_size() as usize).min(launch.kernarg.len()).min(bytes.len());
    bytes[..explicit].copy_from_slice(&launch.kernarg[..explicit]);
    for arg in &info.args {
        let ArgKind::Hidden(hidden) = arg.kind else { continue };
        let value: u64 = match hidden {
            HiddenArg::BlockCount(axis) => u64::from(launch.grid[usize::from(axis)]),
            HiddenArg::GroupSize(axis) => u64::from(launch.block[usize::from(axis)]),
            HiddenArg::GridDims => 3,
            HiddenArg::DynamicLdsSize => u64::from(launch.dynamic_lds),
            HiddenArg::SharedBase => u64::from(SHARED_APERTURE),
            HiddenArg::PrivateBase => u64::from(PRIVATE_APERTURE),
            // Every workgroup is full, and there is no host service, heap or queue to call.
            _ => 0,
        };
        let size = (arg.size as usize).min(8);
        let at = arg.offset as usize;
        if let Some(cell) = bytes.get_mut(at..at + size) {
            cell.copy_from_slice(&value.to_le_bytes()[..size]);
        }
    }
    bytes
}

/// The AQL packet (`hsa_kernel_dispatch_packet_t`).
fn packet_bytes(
    info: &KernelInfo,
    launch: &Launch<'_>,
    lds: u32,
    kernarg: u64,
) -> [u8; PACKET_SIZE as usize] {
    let mut bytes = [0; PACKET_SIZE as usize];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    // Type 2 is a kernel dispatch.
    put(0, &2u16.to_le_bytes());
    put(2, &3u16.to_le_bytes());
    for axis in 0..3 {
        put(4 + axis * 2, &(launch.block[axis] as u16).to_le_bytes());
        put(12 + axis * 4, &launch.grid[axis].wrapping_mul(launch.block[axis]).to_le_bytes());
    }
    put(24, &info.scratch_size.to_le_bytes());
    put(28, &lds.to_le_bytes());
    put(40, &kernarg.to_le_bytes());
    bytes
}

/// The queue (`amd_queue_t`), of which a kernel reads the apertures.
fn queue_bytes() -> [u8; QUEUE_SIZE as usize] {
    let mut bytes = [0; QUEUE_SIZE as usize];
    bytes[0x40..0x44].copy_from_slice(&SHARED_APERTURE.to_le_bytes());
    bytes[0x44..0x48].copy_from_slice(&PRIVATE_APERTURE.to_le_bytes());
    bytes
}

/// Dwords of arguments to preload; only gfx90a and gfx942 can.
fn preload_count(gfx: Gfx, descriptor: &KernelDescriptor) -> usize {
    match gfx.generation() {
        Generation::Cdna => usize::from(descriptor.preload & 0x7f),
        _ => 0,
    }
}

/// The lowest workgroup that faulted, and how.
type FirstFault = Mutex<Option<(u64, Fault, Site)>>;

impl Dispatch<'_> {
    fn run(&self) -> Result<Report, FaultReport> {
        let workgroups: u64 = self.launch.grid.iter().map(|&n| u64::from(n)).product();
        let threads = self.threads(workgroups);
        let next = AtomicU64::new(0);
        let end = AtomicU64::new(workgroups);
        let fault = FirstFault::default();
        let total = Mutex::new((Report::default(), Vec::new()));
        let refuse = |error| FaultReport::new(Fault::Memory(error), &self.info.name, self.gfx, None);
        // One launch in check mode at a time: it remembers accesses in the machine's one map of them.
        let mut cells = self.launch.options.check.then(|| self.memory.cells()).transpose().map_err(refuse)?;
        let map = cells.as_ref().map(|cells| cells.map());
        let last_actor = AtomicU32::new(0);
        let work = || {
            let mut worker = Worker::new(self, map);
            loop {
                let position = next.fetch_add(1, Ordering::Relaxed);
                // Workgroups start in order, so that all below the lowest fault run whatever the timing.
                if position >= end.load(Ordering::Relaxed) {
                    break;
                }
                let workgroup = self.workgroup(position, workgroups);
                if let Err((fault_found, site)) = worker.run(workgroup, position) {
                    end.fetch_min(position, Ordering::Relaxed);
                    let mut first = fault.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    if first.as_ref().is_none_or(|(lowest, ..)| position < *lowest) {
                        *first = Some((position, *fault_found, site));
                    }
                }
            }
            let mut total = total.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            total.0.add(&worker.report);
            if let Some(check) = &worker.env.check {
                last_actor.store(check.last_actor(), Ordering::Relaxed);
            }
            if let Some(counts) = &worker.env.profile {
                total.1.resize(counts.len(), Counts::default());
                total.1.iter_mut().zip(counts).for_each(|(total, counts)| total.add(counts));
            }
        };
        if threads <= 1 {
            work();
        } else {
            rayon::in_place_scope(|scope| {
                for _ in 1..threads {
                    scope.spawn(|_| work());
                }
                work();
            });
        }
        match &mut cells {
            Some(cells) => cells.set_last_actor(last_actor.into_inner()),
            None => self.memory.trust_everything(),
        }
        match fault.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            Some((_, fault, site)) => Err(FaultReport::new(fault, &self.info.name, self.gfx, Some(site))),
            None => {
                let (mut report, counts) =
                    total.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
                report.profile = self.launch.options.profile.then(|| Box::new(self.profile(&counts)));
                Ok(report)
            }
        }
    }

    fn profile(&self, counts: &[Counts]) -> Profile {
        let module = self.kernel.module();
        let code = self.code;
        let mut instructions = Vec::new();
        for (index, counts) in counts.iter().enumerate().filter(|(_, counts)| counts.executed != 0) {
            let pc = code.address_of(index as u32);
            let name = code.insts[index].as_ref().map_or("", |inst| inst.name);
            // A split barrier counts where the wave signals that it has come.
            let is_barrier = name == "s_barrier" || name.starts_with("s_barrier_signal");
            let barriers = if is_barrier { counts.executed } else { 0 };
            instructions.push(InstructionProfile {
                pc,
                text: code.text_of(index as u32).unwrap_or_default(),
                unit: code.ops[index].unit,
                source: Vec::new(),
                counts: Counts { barriers, ..*counts },
            });
        }
        let addresses: Vec<u64> = instructions.iter().map(|instruction| instruction.pc).collect();
        for (instruction, source) in
            instructions.iter_mut().zip(crate::source::lines_of(&module.object, &addresses))
        {
            instruction.source = source;
        }
        Profile {
            kernel: self.info.name.clone(),
            gfx: self.gfx.name(),
            waves_per_simd: self.info.waves_per_simd(self.gfx),
            instructions,
        }
    }

    fn threads(&self, workgroups: u64) -> usize {
        let wanted = match self.launch.options.threads {
            0 => rayon::current_num_threads(),
            threads => threads,
        };
        // Starting another thread costs more than a few waves.
        let worth = (workgroups * u64::from(self.work_items) / 2048).clamp(1, workgroups);
        if self.launch.options.check || self.order_matters() {
            1
        } else {
            wanted.min(usize::try_from(worth).unwrap_or(wanted))
        }
    }

    /// Whether the result could depend on the order in which workgroups reach memory: one thread then gives the
    /// same result every time.
    fn order_matters(&self) -> bool {
        let code = self.code;
        let start = self.entry;
        let end = code
            .index_of(self.info.descriptor.entry + self.info.code_bytes)
            .filter(|&end| self.info.code_bytes != 0 && end > start);
        let ops = end.map_or(&code.ops[..], |end| &code.ops[start as usize..end as usize]);
        let is_ordered = |ops: &[crate::exec::Op]| {
            ops.iter().any(|op| {
                op.unit == Unit::Vmem
                    && op.atomic.is_some_and(|operation| operation.is_ordered() || op.dst[0] != Dst::None)
            })
        };
        let calls = ops.iter().any(|op| op.unit == Unit::Branch && op.dst[0] != Dst::None);
        is_ordered(if calls { &code.ops } else { ops })
    }

    /// The workgroup at a position in the order of execution.
    fn workgroup(&self, position: u64, workgroups: u64) -> [u32; 3] {
        let index = match self.launch.options.shuffle {
            Some(seed) => permute(position, workgroups, seed),
            None => position,
        };
        let [x, y, _] = self.launch.grid.map(u64::from);
        [(index % x) as u32, (index / x % y) as u32, (index / x / y) as u32]
    }

    fn wave_size(&self) -> u32 {
        if self.gfx.generation() == Generation::Cdna || !self.info.descriptor.wave32() { 64 } else { 32 }
    }

    /// Sets a wave's registers as the dispatcher does.
    fn start(&self, wave: &mut Wave, index: u32, workgroup: [u32; 3], scratch_base: u64) {
        let code = self.code;
        let descriptor = &self.info.descriptor;
        wave.reset(code.vgprs, code.agprs);
        wave.pc = self.entry;
        wave.index = index;
        wave.scratch_size = self.scratch;
        wave.scratch_base = scratch_base + u64::from(index * wave.size()) * u64::from(self.scratch);
        wave.mode = self.mode();
        let first = index * wave.size();
        let lanes = (self.work_items - first).min(wave.size());
        wave.work_items = lanes;
        let exec = u64::MAX >> (64 - lanes);
        wave.set_scalar64(Dst::Sgpr(slot::EXEC), exec);
        for (base, aperture) in [(slot::SHARED_BASE, SHARED_APERTURE), (slot::PRIVATE_BASE, PRIVATE_APERTURE)]
        {
            wave.set_scalar64(Dst::Sgpr(base), u64::from(aperture) << 32);
            wave.set_scalar64(Dst::Sgpr(base + 2), u64::from(aperture) << 32 | 0xffff_ffff);
        }
        wave.set_scalar64(Dst::Sgpr(slot::FLAT_SCRATCH_BASE), wave.scratch_base);
        if self.gfx.generation() == Generation::Cdna {
            wave.set_scalar64(Dst::Sgpr(slot::FLAT_SCRATCH), wave.scratch_base);
        }
        self.set_sgprs(wave, descriptor, workgroup);
        self.set_work_item_ids(wave, first, lanes);
    }

    /// MODE as `COMPUTE_PGM_RSRC1` asks for it.
    fn mode(&self) -> u32 {
        let rsrc1 = self.info.descriptor.rsrc1;
        let float_mode = rsrc1 >> 12 & 0xff;
        let f16_overflow = (rsrc1 >> 26 & 1) << 23;
        match self.gfx.generation() {
            // gfx12 has neither switch: NaN clamps to zero, and signaling NaNs become quiet.
            Generation::Gfx12 => float_mode | 1 << 8 | 1 << 9 | f16_overflow,
            _ => float_mode | (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9 | f16_overflow,
        }
    }

    fn set_sgprs(&self, wave: &mut Wave, descriptor: &KernelDescriptor, workgroup: [u32; 3]) {
        let mut next = 0u8;
        let mut push = |wave: &mut Wave, values: &[u32]| {
            for &value in values {
                if next < slot::VCC {
                    wave.sgpr[usize::from(next)] = value;
                    next += 1;
                }
            }
        };
        let pair = |value: u64| [value as u32, (value >> 32) as u32];
        let has = |bit: u16| descriptor.properties >> bit & 1 != 0;
        if has(0) {
            // Swizzled, with the lane number added; the instructions know it for scratch by that.
            let [low, high] = pair(wave.scratch_base);
            push(wave, &[low, high & 0xffff | 1 << 31, u32::MAX, 1 << 23]);
        }
        for (bit, value) in
            [(1, self.packet), (2, self.queue), (3, self.kernarg), (4, 0), (5, wave.scratch_base)]
        {
            if has(bit) {
                push(wave, &pair(value));
            }
        }
        if has(6) {
            push(wave, &[self.scratch]);
        }
        push(wave, &self.preloaded);
        let user_sgprs = (descriptor.rsrc2 >> 1 & 0x1f) as u8;
        next = user_sgprs;
        let mut push = |wave: &mut Wave, value: u32| {
            if next < slot::VCC {
                wave.sgpr[usize::from(next)] = value;
                next += 1;
            }
        };
        if self.gfx.generation() == Generation::Gfx12 {
            let ttmp = |n: u8| usize::from(slot::TTMP + n);
            wave.sgpr[ttmp(9)] = workgroup[0];
            wave.sgpr[ttmp(7)] = workgroup[1] & 0xffff | workgroup[2] << 16;
            wave.sgpr[ttmp(8)] = wave.index << 25;
            return;
        }
        for (axis, id) in workgroup.into_iter().enumerate() {
            if descriptor.rsrc2 >> (7 + axis) & 1 != 0 {
                push(wave, id);
            }
        }
        if descriptor.rsrc2 >> 10 & 1 != 0 {
            push(wave, 0);
        }
        // The wave's offset into scratch memory is in its base already.
        if descriptor.rsrc2 & 1 != 0 {
            push(wave, 0);
        }
    }

    /// Registers that a wave starts with, for check mode.
    fn registers(&self) -> Registers {
        let descriptor = &self.info.descriptor;
        let user = (descriptor.rsrc2 >> 1 & 0x1f) as u8;
        let system = (descriptor.rsrc2 >> 7 & 0xf).count_ones() as u8 + (descriptor.rsrc2 & 1) as u8;
        let packed = self.gfx.generation() != Generation::Gfx10;
        let vector = if packed { 1 } else { (descriptor.rsrc2 >> 11 & 3) as u8 + 1 };
        Registers { scalar: (user + system).min(slot::VCC), vector: vector.min(3) }
    }

    fn set_work_item_ids(&self, wave: &mut Wave, first: u32, lanes: u32) {
        let [size_x, size_y, _] = self.launch.block;
        let packed =
            matches!(self.gfx.generation(), Generation::Gfx11 | Generation::Gfx12 | Generation::Cdna);
        let axes = self.info.descriptor.rsrc2 >> 11 & 3;
        for lane in 0..lanes {
            let id = first + lane;
            let ids = [id % size_x, id / size_x % size_y, id / size_x / size_y];
            if packed {
                wave.set_lane(0, lane as usize, ids[0] | ids[1] << 10 | ids[2] << 20);
            } else {
                for (register, id) in ids.into_iter().enumerate().take(axes as usize + 1) {
                    wave.set_lane(register as u16, lane as usize, id);
                }
            }
        }
    }
}

/// A thread's share of a launch.
struct Worker<'a> {
    dispatch: &'a Dispatch<'a>,
    env: Env<'a>,
    waves: Vec<Wave>,
    status: Vec<Status>,
    scratch: Vec<u8>,
    report: Report,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Running,
    AtBarrier,
    Ended,
}

thread_local! {
    /// Waves of earlier launches: their memory is not asked for anew. What is in them does not matter, since a
    /// wave's registers are cleared when it starts, as far as its code names them.
    static WAVES: RefCell<Vec<Wave>> = const { RefCell::new(Vec::new()) };
}

/// Waves that a thread keeps.
const KEPT_WAVES: usize = 64;

fn take_wave(size: u32) -> Wave {
    let kept = WAVES.with_borrow_mut(|waves| {
        let at = waves.iter().position(|wave| wave.size() == size)?;
        Some(waves.swap_remove(at))
    });
    kept.unwrap_or_else(|| Wave::new(size))
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        WAVES.with_borrow_mut(|waves| {
            let room = KEPT_WAVES - waves.len().min(KEPT_WAVES);
            waves.extend(self.waves.drain(..).take(room));
        });
    }
}

impl<'a> Worker<'a> {
    fn new(dispatch: &'a Dispatch<'a>, cells: Option<CellMap<'a>>) -> Self {
        let module = dispatch.kernel.module();
        let size = dispatch.wave_size();
        let waves = dispatch.work_items.div_ceil(size);
        let scratch = u64::from(waves * size) * u64::from(dispatch.scratch);
        let options = &dispatch.launch.options;
        let mut env = Env::new(dispatch.code, module.base, dispatch.memory, dispatch.lds, options.perturb);
        env.profile = options.profile.then(|| vec![Counts::default(); dispatch.code.ops.len()]);
        env.check = cells.map(|cells| Box::new(Check::new(waves, dispatch.lds, dispatch.code, cells)));
        Worker {
            dispatch,
            env,
            waves: (0..waves).map(|_| take_wave(size)).collect(),
            status: vec![Status::Running; waves as usize],
            scratch: vec![0; scratch as usize],
            report: Report::default(),
        }
    }

    /// Runs one workgroup: its waves take turns, each up to a barrier, its end or the end of its turn.
    fn run(&mut self, workgroup: [u32; 3], position: u64) -> Result<(), (Box<Fault>, Site)> {
        let options = &self.dispatch.launch.options;
        let mut order =
            options.shuffle.map(|seed| Random(seed ^ position.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        self.scratch.fill(0);
        self.env.begin_workgroup(self.waves.len() as u32);
        let scratch_base = self.scratch.as_mut_ptr().expose_provenance() as u64;
        for (index, wave) in self.waves.iter_mut().enumerate() {
            self.dispatch.start(wave, index as u32, workgroup, scratch_base);
            self.status[index] = Status::Running;
        }
        if let Some(check) = &mut self.env.check {
            check.begin_workgroup(workgroup, &self.waves, self.dispatch.registers(), self.dispatch.code);
        }
        let mut running = self.waves.len();
        let waves = running as u32;
        while running != 0 {
            let mut went_on = false;
            let start = order.as_mut().map_or(0, |random| random.below(self.waves.len() as u64) as usize);
            for turn in 0..self.waves.len() {
                let index = (start + turn) % self.waves.len();
                let wave = &mut self.waves[index];
                match self.status[index] {
                    Status::Ended => continue,
                    Status::AtBarrier if self.env.opened < wave.waits_for => continue,
                    _ => {}
                }
                went_on = true;
                let turn = order.as_mut().map_or(TURN, |random| 1 + random.below(64));
                let turn = turn.min(options.instruction_budget.saturating_sub(wave.executed).max(1));
                let before = wave.executed;
                let flow = match (self.env.check.is_some(), self.env.profile.is_some()) {
                    (false, false) => run_wave(wave, &mut self.env, turn),
                    (false, true) => run_wave_watched::<false, true>(wave, &mut self.env, turn),
                    (true, false) => run_wave_watched::<true, false>(wave, &mut self.env, turn),
                    (true, true) => run_wave_watched::<true, true>(wave, &mut self.env, turn),
                };
                self.env.clock += wave.executed - before;
                self.status[index] = match flow {
                    Flow::Next | Flow::Yield => Status::Running,
                    Flow::Barrier => Status::AtBarrier,
                    Flow::End => {
                        running -= 1;
                        Status::Ended
                    }
                    Flow::Fault => return Err(self.fault(workgroup, index)),
                };
                if self.status[index] == Status::Running && wave.executed >= options.instruction_budget {
                    self.env.raise(Fault::Budget { budget: options.instruction_budget }, None);
                    return Err(self.fault(workgroup, index));
                }
            }
            if !went_on {
                let ended = waves - running as u32;
                self.env.raise(Fault::Deadlock { waiting: running as u32, waves, ended }, None);
                let index = self.status.iter().position(|status| *status == Status::AtBarrier).unwrap_or(0);
                return Err(self.fault(workgroup, index));
            }
        }
        self.report.workgroups += 1;
        for wave in &self.waves {
            self.report.waves += 1;
            self.report.wave_instructions += wave.executed;
            self.report.lane_instructions += wave.executed * u64::from(wave.work_items);
        }
        Ok(())
    }

    /// What the environment noted, and where.
    fn fault(&mut self, workgroup: [u32; 3], index: usize) -> (Box<Fault>, Site) {
        let (fault, lane) = match self.env.fault.take() {
            Some(raised) => raised,
            None => (Box::new(Fault::IllegalPc { pc: 0 }), None),
        };
        let wave = &self.waves[index];
        let module = self.dispatch.kernel.module();
        let op = wave.last;
        let code = self.dispatch.code;
        let pc = code.address_of(op);
        let [size_x, size_y, _] = self.dispatch.launch.block;
        let work_item = lane.map(|lane| {
            let id = wave.index * wave.size() + lane;
            [id % size_x, id / size_x % size_y, id / size_x / size_y]
        });
        let source = crate::source::lines(&module.object, pc);
        let fault = match *fault {
            Fault::Trap { id } => Box::new(Fault::of_trap(id, &source)),
            _ => fault,
        };
        let site = Site {
            workgroup,
            wave: wave.index,
            lane,
            work_item,
            pc,
            instruction: code.text_of(op).unwrap_or_else(|| "(no instruction)".into()),
            source,
        };
        (fault, site)
    }
}

/// Executes up to `turn` instructions.
pub(crate) fn run_wave(wave: &mut Wave, env: &mut Env<'_>, turn: u64) -> Flow {
    let code: &Code = env.code;
    let mut left = turn;
    let flow = loop {
        let pc = wave.pc;
        let op = &code.ops[pc as usize];
        wave.pc = pc + 1;
        left -= 1;
        // SAFETY: handlers come from `isa::select`, which chose what this machine has.
        let flow = unsafe { (op.run)(wave, env, op) };
        if flow != Flow::Next || left == 0 {
            wave.last = pc;
            break flow;
        }
    };
    wave.executed += turn - left;
    flow
}

/// As [`run_wave`], with check mode's and profile mode's look at every instruction.
fn run_wave_watched<const CHECK: bool, const PROFILE: bool>(
    wave: &mut Wave,
    env: &mut Env<'_>,
    turn: u64,
) -> Flow {
    let code: &Code = env.code;
    for _ in 0..turn {
        let pc = wave.pc;
        let op = &code.ops[pc as usize];
        wave.last = pc;
        wave.executed += 1;
        if CHECK
            && let (Some(check), Some(inst)) = (&mut env.check, &code.insts[pc as usize])
            && let Some(found) =
                check.before(wave, op, inst, Around { code, view: &env.view, epoch: env.opened })
        {
            return env.raise_found(wave, *found);
        }
        if PROFILE && let Some(profile) = &mut env.profile {
            let counts = &mut profile[pc as usize];
            counts.executed += 1;
            counts.active_lanes += u64::from(wave.exec64().count_ones());
            counts.lanes += u64::from(wave.work_items);
        }
        wave.pc = pc + 1;
        // SAFETY: handlers come from `isa::select`, which chose what this machine has.
        let flow = unsafe { (op.run)(wave, env, op) };
        if CHECK && let Some(check) = &mut env.check {
            check.after(wave, op);
        }
        if flow != Flow::Next {
            return flow;
        }
    }
    Flow::Next
}

/// A small generator for orders of execution (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.max(1);
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((self.next() >> 32) * bound) >> 32
    }
}

/// A permutation of `0..count`, drawn from `seed`: a Feistel network over the next power of four, walked until it
/// is in range.
fn permute(position: u64, count: u64, seed: u64) -> u64 {
    let bits = (64 - count.saturating_sub(1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1u64 << bits) - 1;
    let mut value = position;
    loop {
        let (mut left, mut right) = (value >> bits, value & mask);
        for round in 0..4u64 {
            let mixed = Random(right ^ seed.rotate_left(round as u32 * 16) ^ round << 60 | 1).next() >> 20;
            (left, right) = (right, (left ^ mixed) & mask);
        }
        value = left << bits | right;
        if value < count {
            return value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffled_order_visits_every_workgroup_once() {
        for count in [1, 2, 3, 5, 64, 1000] {
            for seed in [0, 1, 0xdead_beef] {
                let mut seen: Vec<u64> = (0..count).map(|position| permute(position, count, seed)).collect();
                seen.sort_unstable();
                assert_eq!(seen, (0..count).collect::<Vec<_>>(), "{count} workgroups, seed {seed}");
            }
        }
    }
}
