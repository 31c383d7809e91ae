//! Whole instructions, from bytes to registers, against what their definitions say.

mod cases;
mod confidence;
mod coverage;
mod cross;
mod differential;
mod division;
mod encodings;
mod exceptions;
mod lanes;
mod masks;
mod matrix;
mod mode;
mod soft;
mod transcendental;
mod true16;

use super::{lookup, prepare, tabled};
use crate::decode;
use crate::exec::code::Code;
use crate::exec::op::Flow;
use crate::exec::wave::{LANES, slot};
use crate::exec::{Env, Op, Wave};
use crate::gfx::Gfx;
use crate::inst::Inst;
use crate::memory::Memory;

/// Denormals kept, round to nearest, DX10 clamp and IEEE: as compilers set MODE for a HIP kernel.
const MODE: u32 = 0x3f0;

/// One wave to run single instructions on.
struct Lab {
    gfx: Gfx,
    wave: Wave,
    perturb: Option<u64>,
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hex")).collect()
}

impl Lab {
    fn new(gfx: Gfx) -> Lab {
        Lab::with_size(gfx, gfx.wave_size())
    }

    fn with_size(gfx: Gfx, size: u32) -> Lab {
        let mut wave = Wave::new(size);
        wave.mode = MODE;
        let mut lab = Lab { gfx, wave, perturb: None };
        lab.exec(u64::MAX);
        lab
    }

    fn exec(&mut self, mask: u64) -> &mut Self {
        self.scalar(slot::EXEC, mask as u32);
        if self.wave.size() == 64 {
            self.scalar(slot::EXEC + 1, (mask >> 32) as u32);
        }
        self
    }

    fn mode(&mut self, mode: u32) -> &mut Self {
        self.wave.mode = mode;
        self
    }

    fn scalar(&mut self, slot: u8, value: u32) -> &mut Self {
        self.wave.sgpr[usize::from(slot)] = value;
        self
    }

    /// Sets a vector register, lane by lane.
    fn set(&mut self, register: u16, f: impl Fn(usize) -> u32) -> &mut Self {
        for lane in 0..self.wave.size() as usize {
            self.wave.set_lane(register, lane, f(lane));
        }
        self
    }

    /// Sets a register pair in all lanes.
    fn set64(&mut self, register: u16, value: u64) -> &mut Self {
        self.set(register, |_| value as u32).set(register + 1, |_| (value >> 32) as u32)
    }

    fn get(&self, register: u16, lane: usize) -> u32 {
        self.wave.lane(register, lane)
    }

    fn get64(&self, register: u16, lane: usize) -> u64 {
        u64::from(self.get(register, lane)) | u64::from(self.get(register + 1, lane)) << 32
    }

    fn vcc(&self) -> u64 {
        self.wave.sgpr64(slot::VCC)
    }

    /// Decodes one instruction, which must be the one that `text` is of.
    fn decode(&self, text: &str, hex: &str) -> Inst {
        let inst = decode::decode(self.gfx, &bytes(hex)).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(decode::print(self.gfx, &inst, None).to_string(), text);
        inst
    }

    fn run_op(&mut self, op: &Op) {
        let memory = Memory::new(1 << 20).expect("memory");
        let code = Code::prepare(self.gfx, &[], &[]);
        let mut env = Env::new(&code, 0, &memory, 0, self.perturb);
        // SAFETY: `lookup` chose the function for this machine.
        let flow = unsafe { (op.run)(&mut self.wave, &mut env, op) };
        assert_eq!(flow, Flow::Next);
    }

    /// Executes the instruction with LLVM's `text`, whose encoding is in [`encodings`].
    fn asm(&mut self, text: &str) -> &mut Self {
        let large = self.wave.size() != self.gfx.wave_size();
        let found = encodings::ENCODINGS.iter().find(|row| (row.0, row.1, row.2) == (self.gfx, large, text));
        let Some((.., hex)) = found else {
            panic!("{}: `{text}` is not in the table of encodings", self.gfx)
        };
        if !large {
            return self.run(text, hex);
        }
        let inst = decode::decode(self.gfx, &bytes(hex)).unwrap_or_else(|error| panic!("{text}: {error}"));
        let op = lookup(self.gfx, &inst).unwrap_or_else(|| panic!("{text}: no semantics"));
        self.run_op(&op);
        self
    }

    /// Executes the instruction with LLVM's `text` and encoding `hex`.
    fn run(&mut self, text: &str, hex: &str) -> &mut Self {
        let inst = self.decode(text, hex);
        let op = lookup(self.gfx, &inst).unwrap_or_else(|| panic!("{text}: no semantics"));
        self.run_op(&op);
        self
    }
}
