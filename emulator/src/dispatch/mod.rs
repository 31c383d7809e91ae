//! From a launch to waves: what the command processor and the dispatcher do.

mod floats;
mod host_calls;
mod order;
mod scratch;
mod threads;
mod watch;
mod worker;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use self::host_calls::HostCalls;
use self::watch::Clock;
use crate::code_object::{ArgKind, HiddenArg, KernelDescriptor, KernelInfo};
use crate::exec::check::Registers;
use crate::exec::op::Dst;
use crate::exec::pressure::live_vgprs;
use crate::exec::wave::slot;
use crate::exec::{Code, Named, Tally, Wave};
use crate::fault::{Fault, FaultReport};
use crate::geometry::{Geometry, GeometryError, Limits};
use crate::gfx::{Generation, Gfx};
use crate::machine::{Kernel, Launch, PacketLaunch};
use crate::memory::Memory;
use crate::profile::{Counts, InstructionProfile, Profile};
use crate::report::Report;
use crate::specs::{MAX_WORKGROUP, SIMDS};
use crate::trace::{TracedLaunch, Tracer};

#[cfg(any(test, all(target_arch = "x86_64", unix)))]
pub(crate) use self::worker::run_wave;

/// Address bits 63:32 of the windows through which FLAT instructions reach LDS and scratch.
const SHARED_APERTURE: u32 = 0x0001_0000;
const PRIVATE_APERTURE: u32 = 0x0002_0000;
/// Bytes behind the arguments: scalar loads may be widened past the last one.
const KERNARG_PADDING: u64 = 64;
const PACKET_SIZE: u64 = 64;
const QUEUE_SIZE: u64 = 256;
/// What the device library's grid barrier works on (`struct mg_info` of `ockl/src/cg.cl`).
const GRID_SIZE: u64 = 64;

/// Everything about a launch that its workgroups share.
struct Dispatch<'a> {
    kernel: &'a Kernel,
    code: &'a Code,
    info: &'a KernelInfo,
    gfx: Gfx,
    launch: &'a Launch<'a>,
    memory: &'a Memory,
    /// Work-items of a full workgroup.
    work_items: u32,
    /// Work-items along each axis of the last workgroup there.
    last: [u32; 3],
    lds: u32,
    /// Bytes of scratch per lane.
    scratch: u32,
    entry: u32,
    kernarg: u64,
    packet: u64,
    queue: u64,
    /// Dwords of arguments that go to scalar registers.
    preloaded: Vec<u32>,
    /// See [`Dispatch::order_matters`].
    order_matters: OnceLock<bool>,
    clock: Option<Clock<'a>>,
    /// If the kernel may call the host.
    host_calls: Option<HostCalls<'a>>,
}

/// Runs a launch.
pub(crate) fn launch(memory: &Memory, kernel: &Kernel, launch: &Launch<'_>) -> Result<Report, FaultReport> {
    let info = kernel.info();
    let gfx = kernel.module().object.gfx();
    let scratch = scratch_size(info, launch.options.stack_size);
    let refuse = |fault: Fault| FaultReport::new(fault, &info.name, gfx, None);
    let (lds, work_items) = check_geometry(info, gfx, launch).map_err(refuse)?;

    let calls = info.args.iter().any(|arg| arg.kind == ArgKind::Hidden(HiddenArg::HostcallBuffer));
    let waves = workgroups(launch).saturating_mul(u64::from(work_items.div_ceil(info.wave_size)));
    let host_calls = calls.then(|| HostCalls::new(memory, waves, launch.options.output.clone())).transpose();
    let host_calls = host_calls.map_err(|error| refuse(Fault::Memory(error)))?;

    let kernarg_bytes = u64::from(info.kernarg_size) + KERNARG_PADDING;
    let block = kernarg_bytes.next_multiple_of(64);
    let size = block + PACKET_SIZE + QUEUE_SIZE + GRID_SIZE;
    let kernarg = memory.take_block(size).map_err(|error| refuse(Fault::Memory(error)))?;
    let (packet, queue) = (kernarg + block, kernarg + block + PACKET_SIZE);
    let grid = queue + QUEUE_SIZE;
    let arguments = arguments(info, launch, grid, host_calls.as_ref().map_or(0, HostCalls::address));
    if launch.options.cooperative {
        memory.gws.begin_barrier(workgroups(launch).wrapping_sub(1) as u32);
    }
    let written = memory
        .fill(kernarg, 0, size)
        .and_then(|()| memory.write(kernarg, &arguments))
        .and_then(|()| memory.write(packet, &packet_bytes(launch, lds, scratch, kernarg)))
        .and_then(|()| memory.write(queue, &queue_bytes()))
        .and_then(|()| memory.write(grid, &grid_bytes(launch, work_items)));

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
        let dispatch = Dispatch {
            kernel,
            code: &code,
            info,
            gfx,
            launch,
            memory,
            work_items,
            last: launch.block,
            lds,
            scratch,
            entry,
            kernarg,
            packet,
            queue,
            preloaded,
            order_matters: OnceLock::new(),
            clock: launch.options.watch.as_ref().map(Clock::new),
            host_calls,
        };
        dispatch.run()
    });
    memory.give_block_back(kernarg, size);
    result
}

/// Runs a launch whose packet, queue and arguments are in memory.
pub(crate) fn launch_packet(
    memory: &Memory,
    kernel: &Kernel,
    given: &PacketLaunch,
) -> Result<Report, FaultReport> {
    let info = kernel.info();
    let gfx = kernel.module().object.gfx();
    let refuse = |fault: Fault| FaultReport::new(fault, &info.name, gfx, None);
    let PacketLaunch { grid, block, lds, scratch, kernarg, packet, queue, ref options } = *given;
    let workgroups: [u32; 3] = std::array::from_fn(|axis| grid[axis].div_ceil(block[axis].max(1)));
    // The dispatcher knows registers, not what the kernel was compiled for: ROCm 6.4 copies with twice as many work-items.
    let fits = SIMDS * info.waves_per_simd(gfx) * info.wave_size;
    let compiled = info.max_workgroup_size.max(fits.min(MAX_WORKGROUP));
    let limits = Limits { grid: [u32::MAX; 3], grid_items: u64::MAX, ..Limits::of(gfx) };
    let geometry = Geometry { grid: workgroups, block, dynamic_lds: lds };
    geometry.check(&limits, compiled, 0).map_err(|e| refuse(refusal(e, geometry, info, gfx)))?;
    let descriptor = &info.descriptor;
    let preloads = preload_count(gfx, descriptor);
    let mut preloaded = vec![0; preloads * 4];
    if preloads != 0 {
        let at = kernarg + u64::from(descriptor.preload >> 7) * 4;
        memory.read(at, &mut preloaded).map_err(|error| refuse(Fault::Memory(error)))?;
    }
    let dwords = preloaded.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let entry = descriptor.entry + if preloads != 0 { 256 } else { 0 };
    let code = kernel.code();
    let entry = code.index_of(entry).ok_or_else(|| refuse(Fault::IllegalPc { pc: descriptor.entry }))?;
    let launch = Launch {
        grid: workgroups,
        block,
        dynamic_lds: lds.saturating_sub(info.lds_size),
        kernarg: &[],
        options: options.clone(),
    };
    let dispatch = Dispatch {
        kernel,
        code: &code,
        info,
        gfx,
        launch: &launch,
        memory,
        work_items: geometry.work_items() as u32,
        last: std::array::from_fn(|axis| grid[axis] - (workgroups[axis] - 1) * block[axis]),
        lds,
        scratch: scratch.next_multiple_of(16),
        entry,
        kernarg,
        packet,
        queue,
        preloaded: dwords.collect(),
        order_matters: OnceLock::new(),
        clock: launch.options.watch.as_ref().map(Clock::new),
        host_calls: None,
    };
    dispatch.run()
}

/// LDS bytes and work-items of a workgroup.
fn check_geometry(info: &KernelInfo, gfx: Gfx, launch: &Launch<'_>) -> Result<(u32, u32), Fault> {
    let Launch { grid, block, dynamic_lds, kernarg, .. } = *launch;
    let geometry = Geometry { grid, block, dynamic_lds };
    // A grid may be as large as a packet can say.
    let limits = Limits { grid: [u32::MAX; 3], ..Limits::of(gfx) };
    let checked = geometry.check(&limits, info.max_workgroup_size, info.lds_size);
    checked.map_err(|error| refusal(error, geometry, info, gfx))?;
    if kernarg.len() < info.explicit_size() as usize {
        return Err(Fault::Arguments { given: kernarg.len(), needed: info.explicit_size() });
    }
    Ok((info.lds_size + dynamic_lds, geometry.work_items() as u32))
}

fn refusal(error: GeometryError, geometry: Geometry, info: &KernelInfo, gfx: Gfx) -> Fault {
    let Geometry { grid, block, .. } = geometry;
    match error {
        GeometryError::Zero | GeometryError::Grid | GeometryError::GridItems => {
            Fault::Geometry { grid, block }
        }
        GeometryError::Block | GeometryError::WorkItems | GeometryError::Compiled => {
            Fault::WorkgroupSize { size: geometry.work_items(), limit: info.max_workgroup_size }
        }
        GeometryError::Lds { bytes } => Fault::LdsSize { bytes, limit: gfx.lds_limit() },
    }
}

/// The argument block: explicit arguments as given, hidden ones filled in.
fn arguments(info: &KernelInfo, launch: &Launch<'_>, grid: u64, host_calls: u64) -> Vec<u8> {
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
            HiddenArg::MultigridSyncArg if launch.options.cooperative => grid,
            HiddenArg::HostcallBuffer => host_calls,
            // Every workgroup is full, and there is no heap or queue.
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

/// The most of a stack that AMD's runtime gives a kernel that does not say what it needs.
const MOST_STACK: u32 = 16 << 10;

/// Bytes of scratch memory of a work-item: what the kernel asks for, and at least `stack` where it does not know what its
/// calls need. So `rocvirtual.cpp` of clr (ROCm 6) has it.
fn scratch_size(info: &KernelInfo, stack: u32) -> u32 {
    let stack = if info.dynamic_stack { stack.min(MOST_STACK) } else { 0 };
    info.scratch_size.max(stack).next_multiple_of(16)
}

/// The AQL packet (`hsa_kernel_dispatch_packet_t`).
fn packet_bytes(launch: &Launch<'_>, lds: u32, scratch: u32, kernarg: u64) -> [u8; PACKET_SIZE as usize] {
    let mut bytes = [0; PACKET_SIZE as usize];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    // Type 2 is a kernel dispatch.
    put(0, &2u16.to_le_bytes());
    put(2, &3u16.to_le_bytes());
    for axis in 0..3 {
        put(4 + axis * 2, &(launch.block[axis] as u16).to_le_bytes());
        put(12 + axis * 4, &launch.grid[axis].wrapping_mul(launch.block[axis]).to_le_bytes());
    }
    put(24, &scratch.to_le_bytes());
    put(28, &lds.to_le_bytes());
    put(40, &kernarg.to_le_bytes());
    bytes
}

/// How many workgroups a launch has.
fn workgroups(launch: &Launch<'_>) -> u64 {
    launch.grid.iter().map(|&n| u64::from(n)).product()
}

/// What a cooperative launch's workgroups wait on: no address, the number of this grid and of grids, work-items of grids
/// before and of all, two words of the barrier, and the number of workgroups.
fn grid_bytes(launch: &Launch<'_>, work_items: u32) -> [u8; GRID_SIZE as usize] {
    let mut bytes = [0; GRID_SIZE as usize];
    let workgroups = workgroups(launch);
    bytes[12..16].copy_from_slice(&1u32.to_le_bytes());
    bytes[24..32].copy_from_slice(&workgroups.wrapping_mul(work_items.into()).to_le_bytes());
    bytes[40..44].copy_from_slice(&(workgroups as u32).to_le_bytes());
    bytes
}

/// The queue (`amd_queue_t`); a kernel reads the apertures from it.
fn queue_bytes() -> [u8; QUEUE_SIZE as usize] {
    let mut bytes = [0; QUEUE_SIZE as usize];
    bytes[0x40..0x44].copy_from_slice(&SHARED_APERTURE.to_le_bytes());
    bytes[0x44..0x48].copy_from_slice(&PRIVATE_APERTURE.to_le_bytes());
    bytes
}

/// Dwords of arguments to preload, which gfx90a and its successors can.
fn preload_count(gfx: Gfx, descriptor: &KernelDescriptor) -> usize {
    match gfx {
        Gfx::Gfx90a | Gfx::Gfx942 | Gfx::Gfx950 => usize::from(descriptor.preload & 0x7f),
        _ => 0,
    }
}

/// Whether a work-item's three numbers are in one register.
fn packs_ids(gfx: Gfx) -> bool {
    match gfx.generation() {
        Generation::Cdna => !matches!(gfx, Gfx::Gfx906 | Gfx::Gfx908),
        Generation::Gfx10 => false,
        Generation::Gfx11 | Generation::Gfx12 => true,
    }
}

impl Dispatch<'_> {
    fn profile(&self, tally: &Tally) -> Profile {
        let lines = self.kernel.module().lines();
        let code = self.code;
        let mut instructions = Vec::new();
        let counted = tally.executed();
        let mut executed: Vec<u32> = counted.iter().map(|&(index, ..)| index).collect();
        executed.dedup();
        let live: BTreeMap<u32, u32> = executed.iter().copied().zip(live_vgprs(code, &executed)).collect();
        for (index, calls, counts) in counted {
            let pc = code.address_of(index);
            let calls = code.stack_of(calls);
            let name = code.insts[index as usize].as_ref().map_or("", |inst| inst.name);
            // A split barrier counts where the wave signals that it has come.
            let is_barrier = name == "s_barrier" || name.starts_with("s_barrier_signal");
            let barriers = if is_barrier { counts.executed } else { 0 };
            instructions.push(InstructionProfile {
                pc,
                text: code.text_of(index).unwrap_or_default(),
                unit: code.ops[index as usize].unit,
                live_vgprs: live[&index],
                source: lines.of_stack(pc, &calls),
                calls,
                counts: Counts { barriers, ..*counts },
            });
        }
        Profile {
            kernel: self.info.name.clone(),
            gfx: self.gfx.name(),
            waves_per_simd: self.info.waves_per_simd(self.gfx),
            instructions,
        }
    }

    /// Tells who traces the launch that it begins.
    fn tell(&self, tracer: &dyn Tracer) {
        let code = self.code;
        let lines = self.kernel.module().lines();
        tracer.launch(&TracedLaunch {
            info: self.info,
            gfx: self.gfx,
            wave_size: self.wave_size(),
            grid: self.launch.grid,
            block: self.launch.block,
            lds: self.lds,
            is_split: self.is_split(),
            instructions: &code.insts,
            address_of: &|index| code.address_of(index),
            source_of: &|index| lines.of_stack(code.address_of(index), &[]),
        });
    }

    /// Work-items of a workgroup along each axis.
    fn block(&self, workgroup: [u32; 3]) -> [u32; 3] {
        std::array::from_fn(|axis| match workgroup[axis] + 1 == self.launch.grid[axis] {
            true => self.last[axis],
            false => self.launch.block[axis],
        })
    }

    fn wave_size(&self) -> u32 {
        if self.gfx.generation() == Generation::Cdna || !self.info.descriptor.wave32() { 64 } else { 32 }
    }

    /// Sets a wave's registers as the dispatcher does.
    fn start(&self, wave: &mut Wave, index: u32, workgroup: [u32; 3], scratch_base: u64) {
        let code = self.code;
        let descriptor = &self.info.descriptor;
        // Work-items' numbers come to up to three of them.
        wave.reset(code.registers_at(self.entry).max(Named { vgprs: 3, agprs: 0 }));
        wave.pc = self.entry;
        wave.index = index;
        wave.scratch_size = self.scratch;
        wave.scratch_base = scratch_base + u64::from(index * wave.size()) * u64::from(self.scratch);
        wave.mode = self.mode();
        let first = index * wave.size();
        let block = self.block(workgroup);
        let lanes = (block.iter().product::<u32>() - first).min(wave.size());
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
        self.set_work_item_ids(wave, first, lanes, block);
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

    /// Whether the waves of a workgroup may run on different compute units: in WGP mode, or in threadgroup split mode.
    fn is_split(&self) -> bool {
        let descriptor = &self.info.descriptor;
        match self.gfx.generation() {
            Generation::Cdna => descriptor.rsrc3 >> 16 & 1 != 0,
            _ => descriptor.rsrc1 >> 29 & 1 != 0,
        }
    }

    /// Registers that a wave starts with, for check mode.
    fn registers(&self) -> Registers {
        let descriptor = &self.info.descriptor;
        let user = (descriptor.rsrc2 >> 1 & 0x1f) as u8;
        let system = (descriptor.rsrc2 >> 7 & 0xf).count_ones() as u8 + (descriptor.rsrc2 & 1) as u8;
        let packed = packs_ids(self.gfx);
        let vector = if packed { 1 } else { (descriptor.rsrc2 >> 11 & 3) as u8 + 1 };
        Registers { scalar: (user + system).min(slot::VCC), vector: vector.min(3) }
    }

    fn set_work_item_ids(&self, wave: &mut Wave, first: u32, lanes: u32, block: [u32; 3]) {
        let [size_x, size_y, _] = block;
        let packed = packs_ids(self.gfx);
        let axes = self.info.descriptor.rsrc2 >> 11 & 3;
        if first + lanes <= size_x && (packed || axes == 0) {
            // The usual: a row of work-items.
            for lane in 0..lanes {
                wave.set_lane(0, lane as usize, first + lane);
            }
            return;
        }
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
