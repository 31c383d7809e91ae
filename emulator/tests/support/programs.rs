//! Three kernels that LLVM 22 makes of one page of HIP for gfx1100, on numbers: an affine map of 16 bytes per lane, a
//! polynomial of 64 FMA per element, and a matrix product over 16 × 16 tiles in LDS.

use amdgpu_emulator::{FaultReport, Gfx, Launch, LaunchOptions, Machine, MachineOptions, Report};

use super::{Kernel, scalar};

/// A kernel and what it is launched on. Work-items come 256 to a workgroup; the first arguments are buffers.
#[derive(Clone, Copy)]
pub struct Program {
    pub name: &'static str,
    text: &'static str,
    /// Elements (f32) of each buffer; the last one is the output.
    buffers: &'static [usize],
    /// Dwords behind the buffers' addresses.
    values: &'static [u32],
    lds: u32,
    pub workgroups: u32,
}

const SIDE: usize = 256;

pub const PROGRAMS: [&Program; 3] = [
    &Program {
        name: "affine 1 Mi",
        text: include_str!("../../benches/programs/affine.txt"),
        buffers: &[1 << 20; 2],
        values: &[2.5f32.to_bits(), 1f32.to_bits(), 1 << 18],
        lds: 0,
        workgroups: 1024,
    },
    &Program {
        name: "polynomial",
        text: include_str!("../../benches/programs/polynomial.txt"),
        buffers: &[1 << 18; 2],
        values: &[1 << 18],
        lds: 0,
        workgroups: 1024,
    },
    &Program {
        name: "matmul 256",
        text: include_str!("../../benches/programs/matmul.txt"),
        buffers: &[SIDE * SIDE; 3],
        values: &[SIDE as u32],
        lds: 2048,
        workgroups: 256,
    },
];

/// Scalar registers before the workgroup's number.
const USER_SGPRS: u32 = 15;

impl Program {
    /// The same on fewer workgroups.
    pub fn with_workgroups(&self, workgroups: u32) -> Program {
        Program { workgroups, ..*self }
    }

    /// Buffers' bytes: numbers 1, 1 + 1/1024, …
    fn contents(&self) -> impl Iterator<Item = Vec<u8>> {
        self.buffers
            .iter()
            .map(|&count| (0..count).flat_map(|n| (1.0 + (n % 1024) as f32 / 1024.0).to_le_bytes()).collect())
    }

    fn kernarg(&self, addresses: &[u64]) -> Vec<u8> {
        let mut kernarg: Vec<u8> = addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
        kernarg.extend(self.values.iter().flat_map(|value| value.to_le_bytes()));
        kernarg
    }

    fn kernel(&self, args: &'static [(u32, &'static str)]) -> Kernel<'static> {
        let mut kernel = Kernel::new(Gfx::Gfx1100, self.text);
        (kernel.args, kernel.lds, kernel.user_sgprs) = (args, self.lds, USER_SGPRS);
        kernel
    }

    /// Ready to run in the emulator.
    pub fn emulated(&self) -> Emulated {
        let machine = Machine::new(Gfx::Gfx1100, MachineOptions::default()).expect("address space");
        const POINTER: (u32, &str) = (8, "global_buffer");
        const VALUE: (u32, &str) = (4, "by_value");
        let args: &[(u32, &str)] = match (self.buffers.len(), self.values.len()) {
            (2, 3) => &[POINTER, POINTER, VALUE, VALUE, VALUE],
            (2, 1) => &[POINTER, POINTER, VALUE],
            _ => &[POINTER, POINTER, POINTER, VALUE],
        };
        let module = machine.load(&self.kernel(args).build()).expect("loads");
        let addresses: Vec<u64> = self
            .contents()
            .map(|bytes| {
                let address = machine.alloc(bytes.len() as u64).expect("memory");
                machine.write(address, &bytes).expect("allocated");
                address
            })
            .collect();
        let output = *addresses.last().expect("an output");
        Emulated {
            kernel: module.kernel("test").expect("the kernel"),
            machine,
            kernarg: self.kernarg(&addresses),
            output: (output, self.buffers[self.buffers.len() - 1] * 4),
            workgroups: self.workgroups,
        }
    }

    /// Ready to run in the scalar reference interpreter.
    pub fn interpreted(&self) -> Interpreted {
        const KERNARG: u64 = 0x1000;
        let addresses: Vec<u64> = (1..=self.buffers.len() as u64).map(|n| n << 32).collect();
        let mut buffers: Vec<(u64, Vec<u8>)> = addresses.iter().copied().zip(self.contents()).collect();
        let mut kernarg = self.kernarg(&addresses);
        // Scalar loads may be wider than the last argument.
        kernarg.resize(kernarg.len() + 64, 0);
        buffers.push((KERNARG, kernarg));
        let code = super::assemble(Gfx::Gfx1100, self.text);
        Interpreted { code, buffers, kernarg: KERNARG, lds: self.lds as usize, workgroups: self.workgroups }
    }
}

/// A kernel, loaded, with its arguments.
pub struct Emulated {
    machine: Machine,
    kernel: amdgpu_emulator::Kernel,
    kernarg: Vec<u8>,
    output: (u64, usize),
    workgroups: u32,
}

impl Emulated {
    /// Launches once.
    pub fn run(&self, check: bool) -> Result<Report, FaultReport> {
        let mut options = LaunchOptions::default();
        options.check = check;
        let (grid, block) = ([self.workgroups, 1, 1], [256, 1, 1]);
        let launch = Launch { grid, block, dynamic_lds: 0, kernarg: &self.kernarg, options };
        self.machine.launch(&self.kernel, &launch)
    }

    /// The output's bytes.
    pub fn output(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.output.1];
        self.machine.read(self.output.0, &mut bytes).expect("allocated");
        bytes
    }
}

/// A kernel and its memory.
pub struct Interpreted {
    code: Vec<u8>,
    buffers: Vec<(u64, Vec<u8>)>,
    kernarg: u64,
    lds: usize,
    workgroups: u32,
}

/// What the scalar interpreter did.
pub struct Executed {
    /// Instructions times lanes.
    pub instructions: u64,
    /// The output's bytes.
    pub output: Vec<u8>,
}

impl Interpreted {
    pub fn run(&self) -> Executed {
        let mut memory = scalar::Memory(self.buffers.clone());
        let launch = scalar::Launch {
            gfx: Gfx::Gfx1100,
            code: &self.code,
            grid: self.workgroups,
            block: 256,
            kernarg: self.kernarg,
            user_sgprs: USER_SGPRS as usize,
            lds: self.lds,
        };
        let instructions = scalar::run(&launch, &mut memory);
        let output = memory.0.swap_remove(self.buffers.len() - 2).1;
        Executed { instructions, output }
    }
}
