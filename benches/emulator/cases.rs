//! Kernels that ship, and what each is launched on.

use amdgpu_emulator::{
    CodeObject, FaultReport, Kernel, Launch, LaunchOptions, Machine, MachineOptions, Report,
};

/// An argument.
#[derive(Clone, Copy, Debug)]
pub enum Arg {
    /// Device memory: so many f32 between 1 and 2.
    Floats(u64),
    /// Device memory: so many f16 between 1 and 2.
    Halves(u64),
    /// Device memory: so many u32 below a bound, in no order.
    Ids(u64, u32),
    /// Device memory: so many f32 in no order.
    Shuffled(u64),
    /// Device memory: these numbers as 64-bit words.
    Words(&'static [u64]),
    /// Device memory: so many bytes of zeros.
    Zeros(u64),
    /// A 64-bit number.
    Usize(u64),
    /// A 32-bit number.
    Int(u32),
    /// A 32-bit floating-point number.
    Float(f32),
    /// No memory.
    Null,
}

/// A launch of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What the table says.
    pub name: &'static str,
    /// Module of the kernel.
    pub family: &'static str,
    /// The kernel.
    pub kernel: &'static str,
    /// Workgroups, work-items of one, and bytes of LDS that the launch asks for.
    pub geometry: ([u32; 3], u32, u32),
    /// The kernel's arguments, in order.
    pub args: &'static [Arg],
}

use Arg::{Float, Floats, Halves, Ids, Int, Null, Shuffled, Usize, Words, Zeros};

const MI: u64 = 1 << 20;
/// What a tile of 64 × 64 needs.
const GEMM_LDS: u32 = 16384;
const ONE: Arg = Usize(1);

/// The launches that are measured: kernels' own geometry where nothing else is said.
pub const CASES: [Case; 16] = [
    Case {
        name: "affine_f32, 1,024 × 1,024",
        family: "affine",
        kernel: "affine_f32",
        geometry: ([1024, 1, 1], 1024, 0),
        args: AFFINE,
    },
    Case {
        name: "affine_f32, 256 × 256",
        family: "affine",
        kernel: "affine_f32",
        geometry: ([256, 1, 1], 256, 0),
        args: AFFINE,
    },
    Case {
        name: "badd_f32",
        family: "binary",
        kernel: "badd_f32",
        geometry: ([256, 1, 1], 256, 0),
        args: &[Usize(MI), ONE, Null, Floats(MI), Floats(MI), Zeros(4 * MI)],
    },
    Case {
        name: "badd_f32, broadcast",
        family: "binary",
        kernel: "badd_f32",
        geometry: ([256, 1, 1], 256, 0),
        args: &[
            Usize(MI),
            Usize(2),
            Words(&[1024, 1024, 1024, 1, 0, 1]),
            Floats(MI),
            Floats(1024),
            Zeros(4 * MI),
        ],
    },
    Case {
        name: "softmax_f32, 1,024 columns",
        family: "reduce",
        kernel: "softmax_f32",
        geometry: ([1024, 1, 1], 256, 0),
        args: &[Floats(MI), Zeros(4 * MI), Int(1024)],
    },
    Case {
        name: "layernorm_f32, 1,024 columns",
        family: "reduce",
        kernel: "layernorm_f32",
        geometry: ([1024, 1, 1], 256, 0),
        args: &[Floats(MI), Zeros(4 * MI), Floats(1024), Floats(1024), Int(1024), Int(256), Float(1e-5)],
    },
    Case {
        name: "is_u32_f32, rows of 256",
        family: "indexing",
        kernel: "is_u32_f32",
        geometry: ([256, 1, 1], 256, 0),
        args: &[
            Usize(MI / 4),
            ONE,
            Words(&[1024, 1]),
            Ids(1024, 4096),
            Floats(MI),
            Zeros(MI),
            ONE,
            Usize(4096),
            Usize(1024),
            Usize(256),
        ],
    },
    Case {
        name: "asort_asc_f32, 1,024 columns",
        family: "sort",
        kernel: "asort_asc_f32",
        geometry: ([64, 1, 1], 256, 0),
        args: &[Shuffled(MI / 16), Zeros(MI / 4), Int(1024), Int(1024)],
    },
    Case {
        name: "im2col_f32, 3 × 3 of 64 × 64",
        family: "conv",
        kernel: "im2col_f32",
        geometry: ([288, 1, 1], 128, 8192),
        args: &[
            Usize(16 * 9 * 4096),
            Usize(64),
            Usize(64),
            Usize(3),
            Usize(3),
            ONE,
            ONE,
            ONE,
            Words(&[1, 16, 64, 64, 65536, 4096, 64, 1]),
            Floats(65536),
            Zeros(16 * 9 * 4096 * 4),
        ],
    },
    Case {
        name: "mul_mat_vec_q4_K, 512 × 4,096",
        family: "quantized",
        kernel: "mul_mat_vec_q4_K_q8_1_cuda1",
        geometry: ([64, 1, 1], 256, 0),
        args: &[
            Zeros(512 * 16 * 144),
            Zeros(128 * 36),
            Zeros(512 * 4),
            Int(4096),
            Int(512),
            Int(4096),
            Int(512),
        ],
    },
    Case {
        name: "mul_mat_q4_K, 256 × 1,024 × 64",
        family: "quantized",
        kernel: "mul_mat_q4_K",
        geometry: ([2, 1, 1], 256, 0),
        args: &[
            Zeros(256 * 4 * 144),
            Zeros(64 * 32 * 36),
            Zeros(64 * 256 * 4),
            Int(1024),
            Int(256),
            Int(64),
            Int(1024),
            Int(256),
        ],
    },
    Case {
        name: "gemm_f16_64x64, 256³",
        family: "gemm",
        kernel: "gemm_f16_64x64",
        geometry: ([4, 4, 1], 128, GEMM_LDS),
        args: GEMM_F16,
    },
    Case {
        name: "gemm_plain_f16, 256³",
        family: "gemm",
        kernel: "gemm_plain_f16",
        geometry: ([4, 4, 1], 128, GEMM_LDS),
        args: GEMM_F16,
    },
    Case {
        name: "gemm_f32_64x64, 256³",
        family: "gemm",
        kernel: "gemm_f32_64x64",
        geometry: ([4, 4, 1], 128, GEMM_LDS),
        args: GEMM_F32,
    },
    Case {
        name: "gemm_f32_64x64, across, 256³",
        family: "gemm",
        kernel: "gemm_f32_64x64",
        geometry: ([4, 4, 1], 128, GEMM_LDS),
        args: GEMM_F32_ACROSS,
    },
    Case {
        name: "quantize_q8_1, 256 × 4,096",
        family: "quantized",
        kernel: "quantize_q8_1",
        geometry: ([1, 256, 1], 128, 0),
        args: &[Floats(MI), Zeros(256 * 128 * 36), Int(4096), Int(4096)],
    },
];

const AFFINE: &[Arg] = &[Usize(MI), ONE, Null, Floats(MI), Zeros(4 * MI), Float(2.5), Float(1.0)];

const SIDE: Arg = Usize(256);

const GEMM_F16: &[Arg] = &product(Halves(1 << 16), [SIDE, ONE]);
const GEMM_F32: &[Arg] = &product(Floats(1 << 16), [SIDE, ONE]);
const GEMM_F32_ACROSS: &[Arg] = &product(Floats(1 << 16), [ONE, SIDE]);

/// The arguments of a product whose operands, both alike, have these strides.
const fn product(operand: Arg, [by_row, by_k]: [Arg; 2]) -> [Arg; 18] {
    [
        SIDE,
        SIDE,
        SIDE,
        ONE,
        Float(1.0),
        operand,
        by_row,
        by_k,
        Usize(0),
        operand,
        by_row,
        by_k,
        Usize(0),
        Float(0.0),
        Zeros(1 << 18),
        ONE,
        SIDE,
        Usize(0),
    ]
}

/// A case, loaded, with its arguments in memory.
pub struct Ready {
    machine: Machine,
    kernel: Kernel,
    kernarg: Vec<u8>,
    geometry: ([u32; 3], u32, u32),
    /// Memory that the arguments name: address and bytes.
    buffers: Vec<(u64, u64)>,
}

impl Case {
    /// Loads the kernel from a code object and fills its memory.
    pub fn ready(&self, elf: &[u8]) -> Ready {
        let object = CodeObject::parse(elf).expect("a code object");
        let machine = Machine::new(object.gfx(), MachineOptions::default()).expect("address space");
        let kernel = machine.load(&object).expect("loads").kernel(self.kernel).expect("the kernel");
        let mut kernarg = vec![0; kernel.info().explicit_size() as usize];
        let mut buffers = Vec::new();
        let explicit = kernel.info().args.iter().filter(|arg| !arg.is_hidden());
        for (place, arg) in explicit.zip(self.args) {
            let (value, size) = match arg.bytes() {
                Some(bytes) => {
                    let address = machine.alloc(bytes.len() as u64).expect("memory");
                    machine.write(address, &bytes).expect("allocated");
                    buffers.push((address, bytes.len() as u64));
                    (address, 8)
                }
                None => arg.value(),
            };
            assert_eq!(size, place.size as usize, "{}: {arg:?} for {:?}", self.name, place.name);
            kernarg[place.offset as usize..][..size].copy_from_slice(&value.to_le_bytes()[..size]);
        }
        let (grid, block, lds) = self.geometry;
        Ready { machine, kernel, kernarg, geometry: (grid, block, lds), buffers }
    }
}

impl Arg {
    /// What the memory holds.
    fn bytes(self) -> Option<Vec<u8>> {
        let mixed = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32;
        Some(match self {
            Arg::Floats(count) => {
                (0..count).flat_map(|n| (1.0 + (n % 1024) as f32 / 1024.0).to_le_bytes()).collect()
            }
            // 10 bits of fraction.
            Arg::Halves(count) => {
                (0..count).flat_map(|n| (0x3c00 | n as u16 & 0x3ff).to_le_bytes()).collect()
            }
            Arg::Ids(count, bound) => (0..count).flat_map(|n| (mixed(n) % bound).to_le_bytes()).collect(),
            Arg::Shuffled(count) => (0..count).flat_map(|n| (mixed(n) as f32).to_le_bytes()).collect(),
            Arg::Words(words) => words.iter().flat_map(|word| word.to_le_bytes()).collect(),
            Arg::Zeros(bytes) => vec![0; bytes as usize],
            _ => return None,
        })
    }

    fn value(self) -> (u64, usize) {
        match self {
            Arg::Usize(value) => (value, 8),
            Arg::Int(value) => (value.into(), 4),
            Arg::Float(value) => (value.to_bits().into(), 4),
            _ => (0, 8),
        }
    }
}

impl Ready {
    /// Launches once.
    pub fn run(&self, options: LaunchOptions) -> Result<Report, FaultReport> {
        let (grid, block, dynamic_lds) = self.geometry;
        let launch = Launch { grid, block: [block, 1, 1], dynamic_lds, kernarg: &self.kernarg, options };
        self.machine.launch(&self.kernel, &launch)
    }

    /// A sum over all memory, which tells results apart.
    pub fn digest(&self) -> u64 {
        let mut digest = 0xcbf2_9ce4_8422_2325_u64;
        for &(address, size) in &self.buffers {
            let mut bytes = vec![0; size as usize];
            self.machine.read(address, &mut bytes).expect("allocated");
            for word in bytes.chunks(8) {
                let mut whole = [0; 8];
                whole[..word.len()].copy_from_slice(word);
                digest = (digest ^ u64::from_le_bytes(whole)).wrapping_mul(0x100_0000_01b3).rotate_left(23);
            }
        }
        digest
    }
}
