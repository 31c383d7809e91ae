//! A scalar reference interpreter: slow and plain, one lane at a time, each instruction written down from its
//! definition. It is the oracle of differential tests, and what the benchmarks' speeds are compared with.
//!
//! It knows what compilers make of ordinary kernels in 32-bit and 64-bit arithmetic, under the usual MODE (round to
//! nearest, denormals kept, DX10 clamp, IEEE); [`supports`] says whether it knows an instruction. It takes decoded
//! instructions and shares nothing else with the emulator.

use amdgpu_emulator::Gfx;
use amdgpu_emulator::decode;
use amdgpu_emulator::inst::{Format, InlineFloat, Inst, Operand, SpecialReg};

const VCC: usize = 106;
const M0: usize = 124;
const EXEC: usize = 126;

/// Buffers by address: all the memory that there is.
#[derive(Default)]
pub struct Memory(pub Vec<(u64, Vec<u8>)>);

impl Memory {
    fn at(&mut self, address: u64, size: usize) -> &mut [u8] {
        for (base, bytes) in &mut self.0 {
            if let Some(offset) = address.checked_sub(*base)
                && offset + size as u64 <= bytes.len() as u64
            {
                return &mut bytes[offset as usize..offset as usize + size];
            }
        }
        panic!("{address:#x} is in no buffer");
    }
}

/// What an instruction does to the wave.
#[derive(PartialEq, Eq, Clone, Copy, Debug)]
pub enum Next {
    Go,
    /// By that many dwords from the next instruction on.
    Branch(i64),
    Barrier,
    End,
}

/// One wave's registers.
#[derive(Clone)]
pub struct Wave {
    pub lanes: usize,
    pub s: [u32; 130],
    pub v: Vec<[u32; 64]>,
    pub scc: bool,
    /// Index of the next instruction.
    pc: usize,
    waits: bool,
    ended: bool,
}

impl Wave {
    pub fn new(lanes: usize) -> Wave {
        Wave { lanes, s: [0; 130], v: vec![[0; 64]; 256], scc: false, pc: 0, waits: false, ended: false }
    }

    fn mask(&self, register: usize) -> u64 {
        let high = if self.lanes == 64 { self.s[register + 1] } else { 0 };
        u64::from(self.s[register]) | u64::from(high) << 32
    }

    fn set_mask(&mut self, register: usize, mask: u64) {
        self.s[register] = mask as u32;
        if self.lanes == 64 {
            self.s[register + 1] = (mask >> 32) as u32;
        }
    }
}

/// A kernel's launch.
pub struct Launch<'a> {
    pub gfx: Gfx,
    pub code: &'a [u8],
    pub grid: u32,
    pub block: u32,
    pub kernarg: u64,
    /// Scalar registers before the workgroup's number; the first two are the arguments' address.
    pub user_sgprs: usize,
    pub lds: usize,
}

/// Runs a launch to its end; how many instructions lanes executed.
pub fn run(launch: &Launch<'_>, memory: &mut Memory) -> u64 {
    let mut program = Vec::new();
    let mut index = vec![usize::MAX; launch.code.len() / 4 + 1];
    let mut at = 0;
    while at < launch.code.len() {
        let inst = decode::decode(launch.gfx, &launch.code[at..]).expect("an instruction");
        index[at / 4] = program.len();
        program.push((at / 4, inst.clone()));
        at += usize::from(inst.size);
    }
    let lanes = launch.gfx.wave_size() as usize;
    let mut executed = 0;
    for workgroup in 0..launch.grid {
        let mut lds = vec![0; launch.lds];
        let mut waves: Vec<Wave> = (0..(launch.block as usize).div_ceil(lanes))
            .map(|number| {
                let mut wave = Wave::new(lanes);
                let active = (launch.block as usize - number * lanes).min(lanes);
                wave.set_mask(EXEC, u64::MAX >> (64 - active));
                (wave.s[0], wave.s[1]) = (launch.kernarg as u32, (launch.kernarg >> 32) as u32);
                wave.s[launch.user_sgprs] = workgroup;
                (0..active).for_each(|lane| wave.v[0][lane] = (number * lanes + lane) as u32);
                wave
            })
            .collect();
        while waves.iter().any(|wave| !wave.ended) {
            for wave in &mut waves {
                let items = launch.block.min(lanes as u32);
                while !wave.waits && !wave.ended {
                    let (at, inst) = &program[wave.pc];
                    executed += u64::from(items);
                    wave.pc += 1;
                    match step(launch.gfx, wave, inst, &mut lds, memory) {
                        Next::Go => {}
                        Next::Branch(distance) => {
                            let target = *at as i64 + i64::from(inst.size / 4) + distance;
                            wave.pc = index[target as usize];
                        }
                        Next::Barrier => wave.waits = true,
                        Next::End => wave.ended = true,
                    }
                }
            }
            if waves.iter().all(|wave| wave.waits || wave.ended) {
                waves.iter_mut().for_each(|wave| wave.waits = false);
            }
        }
    }
    executed
}

/// Whether [`step`] knows an instruction, with these operands and modifiers.
pub fn supports(gfx: Gfx, inst: &Inst) -> bool {
    match inst.format {
        Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk => {
            let mut wave = Wave::new(gfx.wave_size() as usize);
            operands_known(inst) && scalar(&mut wave, inst)
        }
        Format::Vop1 | Format::Vop2 | Format::Vop3 | Format::Vopc => {
            let mods = &inst.mods;
            let plain = mods.dpp.is_none()
                && mods.sdwa.is_none()
                && mods.op_sel == 0
                && !mods.clamp
                && mods.omod as u8 == 0;
            let mut wave = Wave::new(gfx.wave_size() as usize);
            wave.set_mask(EXEC, 1);
            plain && operands_known(inst) && vector(&mut wave, inst)
        }
        Format::Vopd => vopd_known(inst),
        _ => false,
    }
}

fn vopd_known(inst: &Inst) -> bool {
    let mut wave = Wave::new(32);
    wave.set_mask(EXEC, 1);
    let Some(y) = &inst.vopd_y else { return false };
    operands_known(inst) && operands_known(y) && vector(&mut wave, inst) && vector(&mut wave, y)
}

/// Whether all operands are registers and constants that a [`Wave`] has.
fn operands_known(inst: &Inst) -> bool {
    inst.operands.iter().all(|operand| match *operand {
        Operand::Sgpr { index, count } => usize::from(index) + usize::from(count) <= 104,
        Operand::Vgpr { index, count } => usize::from(index) + usize::from(count) <= 256,
        Operand::InlineInt(_) | Operand::InlineFloat(_) | Operand::Literal(_) | Operand::Imm(_) => true,
        Operand::Special(_) => scalar_register(operand).is_some() || is_null(operand),
        _ => false,
    })
}

fn is_null(operand: &Operand) -> bool {
    matches!(operand, Operand::Special(SpecialReg::Null) | Operand::Off)
}

fn scalar_register(operand: &Operand) -> Option<usize> {
    Some(match *operand {
        Operand::Sgpr { index, .. } => usize::from(index),
        Operand::Special(special) => match special {
            SpecialReg::VccLo | SpecialReg::Vcc => VCC,
            SpecialReg::VccHi => VCC + 1,
            SpecialReg::M0 => M0,
            SpecialReg::ExecLo | SpecialReg::Exec => EXEC,
            SpecialReg::ExecHi => EXEC + 1,
            _ => return None,
        },
        _ => return None,
    })
}

/// How a 64-bit operand's constants are read.
#[derive(Clone, Copy)]
enum Wide {
    Bits,
    Signed,
    Float,
}

/// The dword of a source; of a vector register, in one lane.
fn get(wave: &Wave, operand: &Operand, lane: usize) -> u32 {
    match *operand {
        Operand::Vgpr { index, .. } => wave.v[usize::from(index)][lane],
        Operand::InlineInt(value) => value as u32,
        Operand::InlineFloat(value) => f32_of(value).to_bits(),
        Operand::Literal(value) => value,
        Operand::Imm(value) => value as u32,
        _ => scalar_register(operand).map_or(0, |register| wave.s[register]),
    }
}

fn get64(wave: &Wave, operand: &Operand, lane: usize, wide: Wide) -> u64 {
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    match (*operand, wide) {
        (Operand::Vgpr { index, .. }, _) => {
            pair(wave.v[usize::from(index)][lane], wave.v[usize::from(index) + 1][lane])
        }
        (Operand::InlineInt(value), _) => i64::from(value) as u64,
        // Of 64-bit integers, too.
        (Operand::InlineFloat(value), _) => value.f64_bits(),
        (Operand::Literal(value), Wide::Bits) => value.into(),
        (Operand::Literal(value), Wide::Signed) => i64::from(value as i32) as u64,
        (Operand::Literal(value), Wide::Float) => u64::from(value) << 32,
        _ => scalar_register(operand).map_or(0, |register| pair(wave.s[register], wave.s[register + 1])),
    }
}

fn f32_of(value: InlineFloat) -> f32 {
    f32::from_bits(value.f32_bits())
}

fn put(wave: &mut Wave, operand: &Operand, lane: usize, value: u32) {
    match *operand {
        Operand::Vgpr { index, .. } => wave.v[usize::from(index)][lane] = value,
        _ => {
            if let Some(register) = scalar_register(operand) {
                wave.s[register] = value;
            }
        }
    }
}

fn put64(wave: &mut Wave, operand: &Operand, lane: usize, value: u64) {
    match *operand {
        Operand::Vgpr { index, .. } => {
            wave.v[usize::from(index)][lane] = value as u32;
            wave.v[usize::from(index) + 1][lane] = (value >> 32) as u32;
        }
        _ => {
            if let Some(register) = scalar_register(operand) {
                (wave.s[register], wave.s[register + 1]) = (value as u32, (value >> 32) as u32);
            }
        }
    }
}

/// Executes one instruction.
pub fn step(gfx: Gfx, wave: &mut Wave, inst: &Inst, lds: &mut [u8], memory: &mut Memory) -> Next {
    match inst.format {
        Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk => {
            assert!(scalar(wave, inst), "{inst:?}");
            Next::Go
        }
        Format::Sopp => program_control(wave, inst),
        Format::Smem => {
            let base = get64(wave, &inst.srcs()[0], 0, Wide::Bits);
            let offset = match inst.srcs().get(1) {
                Some(operand) if scalar_register(operand).is_some() => {
                    i64::from(get(wave, operand, 0)) + i64::from(inst.mods.offset)
                }
                Some(&Operand::Imm(offset)) => offset,
                _ => i64::from(inst.mods.offset),
            };
            let address = base.wrapping_add_signed(offset) & !3;
            let Operand::Sgpr { index, count } = inst.dsts()[0] else { panic!("{inst:?}") };
            for n in 0..usize::from(count) {
                let bytes = memory.at(address + n as u64 * 4, 4);
                wave.s[usize::from(index) + n] = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
            }
            Next::Go
        }
        Format::Vop1 | Format::Vop2 | Format::Vop3 | Format::Vopc => {
            assert!(vector(wave, inst), "{inst:?}");
            Next::Go
        }
        Format::Vopd => {
            // Both halves read before either writes.
            let before = wave.clone();
            let y = inst.vopd_y.as_ref().expect("two halves");
            assert!(vector(wave, inst), "{inst:?}");
            let mut other = before;
            assert!(vector(&mut other, y), "{inst:?}");
            let Operand::Vgpr { index, .. } = y.dsts()[0] else { panic!("{inst:?}") };
            wave.v[usize::from(index)] = other.v[usize::from(index)];
            Next::Go
        }
        Format::Ds => {
            local(wave, inst, lds);
            Next::Go
        }
        Format::Global => {
            global(wave, inst, memory);
            Next::Go
        }
        // Caches are not there to be invalidated.
        Format::Mubuf if inst.name.ends_with("_inv") => Next::Go,
        _ => panic!("{gfx} {inst:?}"),
    }
}

fn program_control(wave: &Wave, inst: &Inst) -> Next {
    let distance = match inst.operands.first() {
        Some(&Operand::Imm(distance)) => i64::from(distance as i16),
        _ => 0,
    };
    let taken = match inst.name {
        "s_branch" => true,
        "s_cbranch_scc0" => !wave.scc,
        "s_cbranch_scc1" => wave.scc,
        "s_cbranch_vccz" => wave.mask(VCC) == 0,
        "s_cbranch_vccnz" => wave.mask(VCC) != 0,
        "s_cbranch_execz" => wave.mask(EXEC) == 0,
        "s_cbranch_execnz" => wave.mask(EXEC) != 0,
        "s_barrier" => return Next::Barrier,
        "s_endpgm" => return Next::End,
        "s_waitcnt" | "s_waitcnt_depctr" | "s_delay_alu" | "s_clause" | "s_nop" | "s_sendmsg" => false,
        _ => panic!("{inst:?}"),
    };
    if taken { Next::Branch(distance) } else { Next::Go }
}

/// Scalar instructions; false for one that is not known.
fn scalar(wave: &mut Wave, inst: &Inst) -> bool {
    let (dst, srcs) = (inst.dsts().first().copied().unwrap_or(Operand::Off), inst.srcs());
    let src = |n: usize| srcs.get(n).copied().unwrap_or(Operand::Off);
    let (a, b) = (get(wave, &src(0), 0), get(wave, &src(1), 0));
    let wide = if inst.name.ends_with("_i64") { Wide::Signed } else { Wide::Bits };
    let (a64, b64) = (get64(wave, &src(0), 0, wide), get64(wave, &src(1), 0, wide));
    let (sa, sb) = (a as i32, b as i32);
    let scc = wave.scc;
    // A dword and SCC; two dwords and SCC; SCC alone.
    let mut set = |value: u32, scc: bool| {
        put(wave, &dst, 0, value);
        wave.scc = scc;
    };
    match inst.name {
        "s_mov_b32" => set(a, scc),
        "s_add_u32" => set(a.wrapping_add(b), u64::from(a) + u64::from(b) > u64::from(u32::MAX)),
        "s_sub_u32" => set(a.wrapping_sub(b), b > a),
        "s_add_i32" => {
            set(a.wrapping_add(b), i64::from(sa) + i64::from(sb) != i64::from(sa.wrapping_add(sb)))
        }
        "s_sub_i32" => {
            set(a.wrapping_sub(b), i64::from(sa) - i64::from(sb) != i64::from(sa.wrapping_sub(sb)))
        }
        "s_addc_u32" => {
            let sum = u64::from(a) + u64::from(b) + u64::from(scc);
            set(sum as u32, sum > u64::from(u32::MAX));
        }
        "s_subb_u32" => {
            let difference = i64::from(a) - i64::from(b) - i64::from(scc);
            set(difference as u32, difference < 0);
        }
        "s_mul_i32" => set((i64::from(sa) * i64::from(sb)) as u32, scc),
        "s_mul_hi_u32" => set(((u64::from(a) * u64::from(b)) >> 32) as u32, scc),
        "s_mul_hi_i32" => set(((i64::from(sa) * i64::from(sb)) >> 32) as u32, scc),
        "s_min_u32" => set(if a < b { a } else { b }, a < b),
        "s_max_u32" => set(if a >= b { a } else { b }, a >= b),
        "s_min_i32" => set(if sa < sb { a } else { b }, sa < sb),
        "s_max_i32" => set(if sa >= sb { a } else { b }, sa >= sb),
        "s_and_b32" => set(a & b, a & b != 0),
        "s_or_b32" => set(a | b, a | b != 0),
        "s_xor_b32" => set(a ^ b, a ^ b != 0),
        "s_andn2_b32" | "s_and_not1_b32" => set(a & !b, a & !b != 0),
        "s_orn2_b32" | "s_or_not1_b32" => set(a | !b, a | !b != 0),
        "s_nand_b32" => set(!(a & b), !(a & b) != 0),
        "s_nor_b32" => set(!(a | b), !(a | b) != 0),
        "s_xnor_b32" => set(!(a ^ b), !(a ^ b) != 0),
        "s_not_b32" => set(!a, !a != 0),
        "s_lshl_b32" => set(a << (b % 32), a << (b % 32) != 0),
        "s_lshr_b32" => set(a >> (b % 32), a >> (b % 32) != 0),
        "s_ashr_i32" => set((sa >> (b % 32)) as u32, sa >> (b % 32) != 0),
        "s_brev_b32" => set((0..32).filter(|bit| a >> bit & 1 != 0).map(|bit| 1 << (31 - bit)).sum(), scc),
        "s_bcnt1_i32_b32" => {
            let count = (0..32).filter(|bit| a >> bit & 1 != 0).count() as u32;
            set(count, count != 0);
        }
        "s_abs_i32" => set(sa.unsigned_abs(), sa != 0),
        "s_sext_i32_i8" => set(a as i8 as u32, scc),
        "s_sext_i32_i16" => set(a as i16 as u32, scc),
        "s_cselect_b32" => set(if scc { a } else { b }, scc),
        "s_bfm_b32" => set((0..a % 32).map(|bit| 1u32 << bit).sum::<u32>() << (b % 32), scc),
        "s_bfe_u32" => {
            let (offset, width) = (b % 32, b >> 16 & 0x7f);
            let value = (0..width).filter(|n| n + offset < 32).map(|n| (a >> (n + offset) & 1) << n).sum();
            set(value, value != 0);
        }
        "s_movk_i32" => set(i32::from(a as i16) as u32, scc),
        "s_cmp_eq_u32" | "s_cmp_eq_i32" => wave.scc = a == b,
        "s_cmp_lg_u32" | "s_cmp_lg_i32" => wave.scc = a != b,
        "s_cmp_gt_u32" => wave.scc = a > b,
        "s_cmp_ge_u32" => wave.scc = a >= b,
        "s_cmp_lt_u32" => wave.scc = a < b,
        "s_cmp_le_u32" => wave.scc = a <= b,
        "s_cmp_gt_i32" => wave.scc = sa > sb,
        "s_cmp_ge_i32" => wave.scc = sa >= sb,
        "s_cmp_lt_i32" => wave.scc = sa < sb,
        "s_cmp_le_i32" => wave.scc = sa <= sb,
        "s_cmp_eq_u64" => wave.scc = a64 == b64,
        "s_cmp_lg_u64" => wave.scc = a64 != b64,
        "s_bitcmp0_b32" => wave.scc = a >> (b % 32) & 1 == 0,
        "s_bitcmp1_b32" => wave.scc = a >> (b % 32) & 1 == 1,
        "s_and_saveexec_b32" | "s_or_saveexec_b32" => {
            let exec = wave.s[EXEC];
            let new = if inst.name.contains("_and_") { a & exec } else { a | exec };
            // The destination, which may be EXEC itself, is written last.
            (wave.s[EXEC], wave.scc) = (new, new != 0);
            put(wave, &dst, 0, exec);
        }
        "s_mov_b64" => put64(wave, &dst, 0, a64),
        "s_cselect_b64" => put64(wave, &dst, 0, if scc { a64 } else { b64 }),
        "s_and_b64" | "s_or_b64" | "s_xor_b64" | "s_lshl_b64" | "s_lshr_b64" | "s_ashr_i64"
        | "s_andn2_b64" | "s_and_not1_b64" | "s_not_b64" => {
            let distance = b % 64;
            let value = match inst.name {
                "s_and_b64" => a64 & b64,
                "s_or_b64" => a64 | b64,
                "s_xor_b64" => a64 ^ b64,
                "s_lshl_b64" => a64 << distance,
                "s_lshr_b64" => a64 >> distance,
                "s_ashr_i64" => (a64 as i64 >> distance) as u64,
                "s_not_b64" => !a64,
                _ => a64 & !b64,
            };
            put64(wave, &dst, 0, value);
            wave.scc = value != 0;
        }
        _ => return false,
    }
    true
}

/// The result of a floating-point operation: the first operand that is a NaN, quieted; an invalid operation's is
/// positive.
fn nan32(result: f32, operands: &[f32]) -> u32 {
    match operands.iter().find(|operand| operand.is_nan()) {
        Some(nan) => nan.to_bits() | 0x0040_0000,
        None if result.is_nan() => 0x7fc0_0000,
        None => result.to_bits(),
    }
}

fn nan64(result: f64, operands: &[f64]) -> u64 {
    match operands.iter().find(|operand| operand.is_nan()) {
        Some(nan) => nan.to_bits() | 0x0008_0000_0000_0000,
        None if result.is_nan() => 0x7ff8_0000_0000_0000,
        None => result.to_bits(),
    }
}

/// Vector instructions, lane by lane; false for one that is not known.
fn vector(wave: &mut Wave, inst: &Inst) -> bool {
    if let Some(relation) = inst.name.strip_prefix("v_cmp_").or_else(|| inst.name.strip_prefix("v_cmpx_")) {
        return compare(wave, inst, relation);
    }
    if inst.name == "v_readfirstlane_b32" {
        let lane = (wave.mask(EXEC).trailing_zeros() % 64) as usize;
        let value = get(wave, &inst.srcs()[0], lane);
        put(wave, &inst.dsts()[0], 0, value);
        return true;
    }
    if let Some(known) = carries(wave, inst) {
        return known;
    }
    let exec = wave.mask(EXEC);
    for lane in (0..wave.lanes).filter(|lane| exec >> lane & 1 != 0) {
        if let Some(value) = lane32(wave, inst, lane) {
            put(wave, &inst.dsts()[0], lane, value);
        } else if let Some(value) = lane64(wave, inst, lane) {
            put64(wave, &inst.dsts()[0], lane, value);
        } else {
            return false;
        }
    }
    true
}

/// A source of a floating-point instruction, with its modifiers.
fn float(wave: &Wave, inst: &Inst, n: usize, lane: usize) -> f32 {
    let bits = get(wave, &inst.srcs()[n], lane);
    let bits = if inst.mods.abs >> n & 1 != 0 { bits & 0x7fff_ffff } else { bits };
    f32::from_bits(if inst.mods.neg >> n & 1 != 0 { bits ^ 0x8000_0000 } else { bits })
}

fn double(wave: &Wave, inst: &Inst, n: usize, lane: usize) -> f64 {
    let bits = get64(wave, &inst.srcs()[n], lane, Wide::Float);
    let bits = if inst.mods.abs >> n & 1 != 0 { bits & !(1 << 63) } else { bits };
    f64::from_bits(if inst.mods.neg >> n & 1 != 0 { bits ^ 1 << 63 } else { bits })
}

/// One lane's result of an instruction with a dword for a result.
fn lane32(wave: &Wave, inst: &Inst, lane: usize) -> Option<u32> {
    let srcs = inst.srcs();
    let u = |n: usize| get(wave, &srcs[n], lane);
    let i = |n: usize| u(n) as i32;
    let f = |n: usize| float(wave, inst, n, lane);
    let old = || f32::from_bits(get(wave, &inst.dsts()[0], lane));
    let fma = |a: f32, b: f32, c: f32| nan32(a.mul_add(b, c), &[a, b, c]);
    let bit = |operand: &Operand| {
        scalar_register(operand).is_some_and(|register| wave.mask(register) >> lane & 1 != 0)
    };
    Some(match inst.name {
        "v_mov_b32" => u(0),
        "v_not_b32" => !u(0),
        "v_bfrev_b32" => (0..32).filter(|bit| u(0) >> bit & 1 != 0).map(|bit| 1 << (31 - bit)).sum(),
        "v_and_b32" => u(0) & u(1),
        "v_or_b32" => u(0) | u(1),
        "v_xor_b32" => u(0) ^ u(1),
        "v_xnor_b32" => !(u(0) ^ u(1)),
        "v_and_or_b32" => u(0) & u(1) | u(2),
        "v_or3_b32" => u(0) | u(1) | u(2),
        "v_xor3_b32" => u(0) ^ u(1) ^ u(2),
        "v_lshlrev_b32" => u(1) << (u(0) % 32),
        "v_lshrrev_b32" => u(1) >> (u(0) % 32),
        "v_ashrrev_i32" => (i(1) >> (u(0) % 32)) as u32,
        "v_lshl_or_b32" => u(0) << (u(1) % 32) | u(2),
        "v_lshl_add_u32" => (u(0) << (u(1) % 32)).wrapping_add(u(2)),
        "v_add_lshl_u32" => u(0).wrapping_add(u(1)) << (u(2) % 32),
        "v_xad_u32" => (u(0) ^ u(1)).wrapping_add(u(2)),
        "v_add_nc_u32" | "v_add_u32" | "v_add_nc_i32" => u(0).wrapping_add(u(1)),
        "v_sub_nc_u32" | "v_sub_u32" | "v_sub_nc_i32" => u(0).wrapping_sub(u(1)),
        "v_subrev_nc_u32" | "v_subrev_u32" => u(1).wrapping_sub(u(0)),
        "v_add3_u32" => u(0).wrapping_add(u(1)).wrapping_add(u(2)),
        "v_mul_lo_u32" => (u64::from(u(0)) * u64::from(u(1))) as u32,
        "v_mul_hi_u32" => ((u64::from(u(0)) * u64::from(u(1))) >> 32) as u32,
        "v_mul_hi_i32" => ((i64::from(i(0)) * i64::from(i(1))) >> 32) as u32,
        "v_mul_u32_u24" => (u64::from(u(0) & 0xff_ffff) * u64::from(u(1) & 0xff_ffff)) as u32,
        "v_mul_i32_i24" => (i64::from(i(0) << 8 >> 8) * i64::from(i(1) << 8 >> 8)) as u32,
        "v_mad_u32_u24" => {
            (u64::from(u(0) & 0xff_ffff) * u64::from(u(1) & 0xff_ffff) + u64::from(u(2))) as u32
        }
        "v_min_u32" => u(0).min(u(1)),
        "v_max_u32" => u(0).max(u(1)),
        "v_min_i32" => i(0).min(i(1)) as u32,
        "v_max_i32" => i(0).max(i(1)) as u32,
        "v_min3_u32" => u(0).min(u(1)).min(u(2)),
        "v_max3_i32" => i(0).max(i(1)).max(i(2)) as u32,
        "v_bfe_u32" => {
            let (offset, width) = (u(1) % 32, u(2) % 32);
            (0..width).filter(|n| n + offset < 32).map(|n| (u(0) >> (n + offset) & 1) << n).sum()
        }
        "v_bfi_b32" => u(0) & u(1) | !u(0) & u(2),
        "v_alignbit_b32" => ((u64::from(u(0)) << 32 | u64::from(u(1))) >> (u(2) % 32)) as u32,
        "v_alignbyte_b32" => ((u64::from(u(0)) << 32 | u64::from(u(1))) >> (u(2) % 4 * 8)) as u32,
        "v_sad_u32" => u(0).abs_diff(u(1)).wrapping_add(u(2)),
        "v_bcnt_u32_b32" => ((0..32).filter(|bit| u(0) >> bit & 1 != 0).count() as u32).wrapping_add(u(1)),
        "v_ffbh_u32" | "v_clz_i32_u32" => (0..32).find(|bit| u(0) >> (31 - bit) & 1 != 0).unwrap_or(u32::MAX),
        "v_ffbl_b32" | "v_ctz_i32_b32" => (0..32).find(|bit| u(0) >> bit & 1 != 0).unwrap_or(u32::MAX),
        "v_perm_b32" => {
            let bytes = (u64::from(u(0)) << 32 | u64::from(u(1))).to_le_bytes();
            let byte = |n: u32| match u(2) >> (8 * n) & 0xff {
                select @ 0..8 => bytes[select as usize],
                // The signs of bytes 1, 3, 5 and 7.
                select @ 8..12 => {
                    if bytes[(select as usize - 8) * 2 + 1] & 0x80 != 0 {
                        0xff
                    } else {
                        0
                    }
                }
                12 => 0,
                _ => 0xff,
            };
            u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)])
        }
        "v_cndmask_b32" => {
            let chosen = srcs.get(2).map_or(wave.mask(VCC) >> lane & 1 != 0, bit);
            f(usize::from(chosen)).to_bits()
        }
        "v_add_f32" => nan32(f(0) + f(1), &[f(0), f(1)]),
        "v_sub_f32" => nan32(f(0) - f(1), &[f(0), f(1)]),
        "v_subrev_f32" => nan32(f(1) - f(0), &[f(1), f(0)]),
        "v_mul_f32" => nan32(f(0) * f(1), &[f(0), f(1)]),
        "v_fma_f32" => fma(f(0), f(1), f(2)),
        "v_fmac_f32" => fma(f(0), f(1), old()),
        "v_fmaak_f32" => fma(f(0), f(1), f(2)),
        "v_fmamk_f32" => fma(f(0), f(1), f(2)),
        "v_trunc_f32" => nan32(f(0).trunc(), &[f(0)]),
        "v_floor_f32" => nan32(f(0).floor(), &[f(0)]),
        "v_ceil_f32" => nan32(f(0).ceil(), &[f(0)]),
        "v_rndne_f32" => nan32(f(0).round_ties_even(), &[f(0)]),
        "v_cvt_f32_u32" => (u(0) as f32).to_bits(),
        "v_cvt_f32_i32" => (i(0) as f32).to_bits(),
        // Saturating; a NaN is zero.
        "v_cvt_u32_f32" => f(0) as u32,
        "v_cvt_i32_f32" => f(0) as i32 as u32,
        "v_cvt_f32_ubyte0" => ((u(0) & 0xff) as f32).to_bits(),
        "v_cvt_f32_ubyte1" => ((u(0) >> 8 & 0xff) as f32).to_bits(),
        "v_cvt_f32_ubyte2" => ((u(0) >> 16 & 0xff) as f32).to_bits(),
        "v_cvt_f32_ubyte3" => ((u(0) >> 24) as f32).to_bits(),
        "v_cvt_f32_f64" => {
            let x = double(wave, inst, 0, lane);
            if x.is_nan() {
                ((x.to_bits() >> 29) as u32 & 0x7fff_ffff)
                    | (x.to_bits() >> 32) as u32 & 0x8000_0000
                    | 0x7fc0_0000
            } else {
                (x as f32).to_bits()
            }
        }
        "v_cvt_u32_f64" => double(wave, inst, 0, lane) as u32,
        "v_cvt_i32_f64" => double(wave, inst, 0, lane) as i32 as u32,
        // The nearest to the exact reciprocal; denormals are zeros.
        "v_rcp_f32" | "v_rcp_iflag_f32" => {
            let normal = |x: f32| if x.is_subnormal() { 0f32.copysign(x) } else { x };
            nan32(normal((1.0 / f64::from(normal(f(0)))) as f32), &[f(0)])
        }
        _ => return None,
    })
}

/// One lane's result of an instruction with two dwords for a result.
fn lane64(wave: &Wave, inst: &Inst, lane: usize) -> Option<u64> {
    let srcs = inst.srcs();
    let w = |n: usize, wide| get64(wave, &srcs[n], lane, wide);
    let distance = |n: usize| get(wave, &srcs[n], lane) % 64;
    let d = |n: usize| double(wave, inst, n, lane);
    Some(match inst.name {
        "v_lshlrev_b64" => w(1, Wide::Bits) << distance(0),
        "v_lshrrev_b64" => w(1, Wide::Bits) >> distance(0),
        "v_ashrrev_i64" => (w(1, Wide::Signed) as i64 >> distance(0)) as u64,
        "v_add_f64" => nan64(d(0) + d(1), &[d(0), d(1)]),
        "v_mul_f64" => nan64(d(0) * d(1), &[d(0), d(1)]),
        "v_fma_f64" => nan64(d(0).mul_add(d(1), d(2)), &[d(0), d(1), d(2)]),
        "v_cvt_f64_u32" => f64::from(get(wave, &srcs[0], lane)).to_bits(),
        "v_cvt_f64_i32" => f64::from(get(wave, &srcs[0], lane) as i32).to_bits(),
        _ => return None,
    })
}

/// Additions with carries: sums, and a mask of carries; `None` for something else.
fn carries(wave: &mut Wave, inst: &Inst) -> Option<bool> {
    let (subtract, swapped, carry_in) = match inst.name {
        "v_add_co_u32" => (false, false, false),
        "v_sub_co_u32" => (true, false, false),
        "v_subrev_co_u32" => (true, true, false),
        "v_add_co_ci_u32" | "v_addc_co_u32" => (false, false, true),
        "v_sub_co_ci_u32" | "v_subb_co_u32" => (true, false, true),
        "v_subrev_co_ci_u32" | "v_subbrev_co_u32" => (true, true, true),
        _ => return None,
    };
    let (exec, mut out) = (wave.mask(EXEC), 0);
    let carry = match inst.srcs().get(2) {
        Some(operand) => scalar_register(operand).map_or(0, |register| wave.mask(register)),
        None => wave.mask(VCC),
    };
    for lane in (0..wave.lanes).filter(|lane| exec >> lane & 1 != 0) {
        let (a, b) = (get(wave, &inst.srcs()[0], lane), get(wave, &inst.srcs()[1], lane));
        let (a, b) = if swapped { (b, a) } else { (a, b) };
        let carry = if carry_in { carry >> lane & 1 } else { 0 };
        let (value, over) = if subtract {
            let difference = i128::from(a) - i128::from(b) - i128::from(carry);
            (difference as u32, difference < 0)
        } else {
            let sum = u128::from(a) + u128::from(b) + u128::from(carry);
            (sum as u32, sum >> 32 != 0)
        };
        put(wave, &inst.dsts()[0], lane, value);
        out |= u64::from(over) << lane;
    }
    match inst.dsts().get(1) {
        Some(operand) => {
            if let Some(register) = scalar_register(operand) {
                wave.set_mask(register, out);
            }
        }
        None => wave.set_mask(VCC, out),
    }
    Some(true)
}

/// Comparisons: a mask that is zero in inactive lanes.
fn compare(wave: &mut Wave, inst: &Inst, relation: &str) -> bool {
    let Some((relation, ty)) = relation.rsplit_once('_').filter(|(name, _)| *name != "class") else {
        return false;
    };
    let (exec, mut mask) = (wave.mask(EXEC), 0);
    for lane in (0..wave.lanes).filter(|lane| exec >> lane & 1 != 0) {
        let srcs = inst.srcs();
        if srcs.len() < 2 {
            return false;
        }
        let (a, b) = (get(wave, &srcs[0], lane), get(wave, &srcs[1], lane));
        let wide = |n: usize, wide| get64(wave, &srcs[n], lane, wide);
        let order = match ty {
            "u32" => a.partial_cmp(&b),
            "i32" => (a as i32).partial_cmp(&(b as i32)),
            "u64" => wide(0, Wide::Bits).partial_cmp(&wide(1, Wide::Bits)),
            "i64" => (wide(0, Wide::Signed) as i64).partial_cmp(&(wide(1, Wide::Signed) as i64)),
            "f32" => float(wave, inst, 0, lane).partial_cmp(&float(wave, inst, 1, lane)),
            "f64" => double(wave, inst, 0, lane).partial_cmp(&double(wave, inst, 1, lane)),
            _ => return false,
        };
        let (less, equal, greater) = match order {
            None => (false, false, false),
            Some(order) => (order.is_lt(), order.is_eq(), order.is_gt()),
        };
        let holds = match relation {
            "lt" => less,
            "eq" => equal,
            "le" => less || equal,
            "gt" => greater,
            "ge" => greater || equal,
            "lg" => less || greater,
            "ne" | "neq" => !equal,
            "o" => order.is_some(),
            "u" => order.is_none(),
            "nge" => !(greater || equal),
            "nlg" => !(less || greater),
            "ngt" => !greater,
            "nle" => !(less || equal),
            "nlt" => !less,
            "f" => false,
            "t" | "tru" => true,
            _ => return false,
        };
        mask |= u64::from(holds) << lane;
    }
    if inst.name.starts_with("v_cmpx") {
        wave.set_mask(EXEC, mask);
    }
    let named = inst.dsts().first().map(scalar_register);
    match named {
        Some(Some(register)) => wave.set_mask(register, mask),
        Some(None) => {}
        None if !inst.name.starts_with("v_cmpx") => wave.set_mask(VCC, mask),
        None => {}
    }
    true
}

/// LDS loads and stores of dwords.
fn local(wave: &mut Wave, inst: &Inst, lds: &mut [u8]) {
    let name = inst.name.strip_prefix("ds_").expect("an LDS instruction");
    let pair = name.contains("2");
    let is_load = name.starts_with("read") || name.starts_with("load");
    let dwords = match name.rsplit('_').next() {
        Some("b32") => 1,
        Some("b64") => 2,
        Some("b96") => 3,
        Some("b128") => 4,
        _ => panic!("{inst:?}"),
    };
    let pair = pair && (name.contains("2addr") || name.starts_with("read2") || name.starts_with("write2"));
    let scale = if name.contains("st64") || name.contains("stride64") { 64 } else { 1 } * dwords * 4;
    let offsets = if pair {
        vec![usize::from(inst.mods.offset0) * scale, usize::from(inst.mods.offset1) * scale]
    } else {
        vec![inst.mods.offset as usize]
    };
    let exec = wave.mask(EXEC);
    for lane in (0..wave.lanes).filter(|lane| exec >> lane & 1 != 0) {
        let address = get(wave, &inst.srcs()[0], lane);
        for (n, offset) in offsets.iter().enumerate() {
            for dword in 0..dwords {
                let at = address.wrapping_add(*offset as u32) as usize + dword * 4;
                if is_load {
                    let Operand::Vgpr { index, .. } = inst.dsts()[0] else { panic!("{inst:?}") };
                    let value = u32::from_le_bytes(lds[at..at + 4].try_into().expect("four bytes"));
                    wave.v[usize::from(index) + n * dwords + dword][lane] = value;
                } else {
                    let Operand::Vgpr { index, .. } = inst.srcs()[1 + n] else { panic!("{inst:?}") };
                    let value = wave.v[usize::from(index) + dword][lane];
                    lds[at..at + 4].copy_from_slice(&value.to_le_bytes());
                }
            }
        }
    }
}

/// Global loads and stores of bytes, shorts and dwords.
fn global(wave: &mut Wave, inst: &Inst, memory: &mut Memory) {
    let name = inst.name.strip_prefix("global_").expect("a global instruction");
    let (is_load, shape) = match name.split_once('_') {
        Some(("load", shape)) => (true, shape),
        Some(("store", shape)) => (false, shape),
        _ => panic!("{inst:?}"),
    };
    let (bytes, dwords) = match shape {
        "u8" | "ubyte" | "b8" | "byte" => (1, 1),
        "u16" | "ushort" | "b16" | "short" => (2, 1),
        "b32" | "dword" => (4, 1),
        "b64" | "dwordx2" => (8, 2),
        "b96" | "dwordx3" => (12, 3),
        "b128" | "dwordx4" => (16, 4),
        _ => panic!("{inst:?}"),
    };
    let scalar_base = inst.srcs().last().filter(|operand| scalar_register(operand).is_some());
    let exec = wave.mask(EXEC);
    for lane in (0..wave.lanes).filter(|lane| exec >> lane & 1 != 0) {
        let address = match scalar_base {
            Some(base) => get64(wave, base, 0, Wide::Bits) + u64::from(get(wave, &inst.srcs()[0], lane)),
            None => get64(wave, &inst.srcs()[0], lane, Wide::Bits),
        };
        let cells = memory.at(address.wrapping_add(inst.mods.offset as i64 as u64), bytes);
        let data = if is_load { inst.dsts()[0] } else { inst.srcs()[1] };
        let Operand::Vgpr { index, .. } = data else { panic!("{inst:?}") };
        for (dword, cell) in cells.chunks_mut(4).enumerate().take(dwords) {
            let register = &mut wave.v[usize::from(index) + dword][lane];
            if is_load {
                let mut value = [0; 4];
                value[..cell.len()].copy_from_slice(cell);
                *register = u32::from_le_bytes(value);
            } else {
                cell.copy_from_slice(&register.to_le_bytes()[..cell.len()]);
            }
        }
    }
}
