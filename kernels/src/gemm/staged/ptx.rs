//! Instructions of NVIDIA GPUs that have no other name in Rust. On other targets they panic: nobody calls them there.

/// The number by which PTX knows a place in workgroup memory.
#[inline(always)]
pub(super) fn shared<T>(place: *const T) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: a conversion
    unsafe {
        let number: u64;
        core::arch::asm!("cvta.to.shared.u64 {}, {};", out(reg64) number, in(reg64) place, options(pure, nomem));
        number as u32
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = place;
        amdgpu_device::trap()
    }
}

/// Begins to copy 16 bytes to workgroup memory: the first `bytes` from global memory, zeros behind them.
///
/// # Safety
/// So many bytes can be read, and nobody uses the 16 bytes at `to`. Both addresses are multiples of 16.
#[inline(always)]
pub(super) unsafe fn copy_16<T>(to: u32, from: *const T, bytes: u32) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: the caller's
    unsafe {
        core::arch::asm!("cp.async.cg.shared.global [{}], [{}], 16, {};", in(reg32) to, in(reg64) from, in(reg32) bytes);
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = (to, from, bytes);
        amdgpu_device::trap()
    }
}

/// [`copy_16`] of 16 bytes that all exist.
///
/// # Safety
/// As for [`copy_16`].
#[inline(always)]
pub(super) unsafe fn copy_whole<T>(to: u32, from: *const T) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: the caller's
    unsafe {
        core::arch::asm!("cp.async.cg.shared.global [{}], [{}], 16;", in(reg32) to, in(reg64) from);
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = (to, from);
        amdgpu_device::trap()
    }
}

/// Begins to copy 4 or 8 bytes, or as many zeros if `bytes` is 0.
///
/// # Safety
/// As for [`copy_16`], with the alignment of so many bytes.
#[inline(always)]
pub(super) unsafe fn copy_element<T>(to: u32, from: *const T, bytes: u32) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: the caller's
    unsafe {
        if const { size_of::<T>() == 4 } {
            core::arch::asm!("cp.async.ca.shared.global [{}], [{}], 4, {};",
                in(reg32) to, in(reg64) from, in(reg32) bytes);
        } else {
            core::arch::asm!("cp.async.ca.shared.global [{}], [{}], 8, {};",
                in(reg32) to, in(reg64) from, in(reg32) bytes);
        }
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = (to, from, bytes);
        amdgpu_device::trap()
    }
}

/// Ends a group of copies, which may be empty.
#[inline(always)]
pub(super) fn end_group() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: copies that have been begun
    unsafe {
        core::arch::asm!("cp.async.commit_group;");
    }
    #[cfg(not(target_arch = "nvptx64"))]
    amdgpu_device::trap()
}

/// Waits until no more than the last `PENDING` groups of this lane are under way.
#[inline(always)]
pub(super) fn wait<const PENDING: u32>() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: copies that have been begun
    unsafe {
        core::arch::asm!("cp.async.wait_group {};", const PENDING);
    }
    #[cfg(not(target_arch = "nvptx64"))]
    amdgpu_device::trap()
}

/// Four blocks of eight rows of 16 bytes: lane 8·b + r gives the address of row r of block b, and lane l gets word l mod 4 of row
/// l div 4 of each.
///
/// # Safety
/// The rows have been written, and all lanes of the wave come here.
#[inline(always)]
pub(super) unsafe fn blocks(at: u32) -> [u32; 4] {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: the caller's
    unsafe {
        let (a, b, c, d): (u32, u32, u32, u32);
        core::arch::asm!("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{}, {}, {}, {}}}, [{}];",
            out(reg32) a, out(reg32) b, out(reg32) c, out(reg32) d, in(reg32) at, options(readonly));
        [a, b, c, d]
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = at;
        amdgpu_device::trap()
    }
}

/// [`blocks`], each transposed as 8 by 8 elements of two bytes: lane l gets elements 2·(l mod 4) and the next of column l div 4.
///
/// # Safety
/// As for [`blocks`].
#[inline(always)]
pub(super) unsafe fn blocks_across(at: u32) -> [u32; 4] {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: the caller's
    unsafe {
        let (a, b, c, d): (u32, u32, u32, u32);
        core::arch::asm!("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{{}, {}, {}, {}}}, [{}];",
            out(reg32) a, out(reg32) b, out(reg32) c, out(reg32) d, in(reg32) at, options(readonly));
        [a, b, c, d]
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = at;
        amdgpu_device::trap()
    }
}

/// Adds the products of 16 rows by 8 rows over eight f64: lane l has elements l mod 4 of the first and of the last four k of rows
/// l div 4 and 8 + l div 4 of A, and of row l div 4 of B; sums as for [`multiply`].
#[inline(always)]
pub(super) fn multiply_f64(a: [u64; 4], b: [u64; 2], sums: [u64; 4]) -> [u64; 4] {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: arithmetic; the kernel has no branches in which lanes of a wave part
    unsafe {
        let [mut c, mut d, mut e, mut f] = sums;
        core::arch::asm!(
            "//sm_90a mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {{{0}, {1}, {2}, {3}}}, {{{4}, {5}, {6}, {7}}}, {{{8}, {9}}}, {{{0}, {1}, {2}, {3}}};",
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{{0}, {1}}}, {{{4}}}, {{{8}}}, {{{0}, {1}}}; //sm_80",
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{{2}, {3}}}, {{{5}}}, {{{8}}}, {{{2}, {3}}}; //sm_80",
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{{0}, {1}}}, {{{6}}}, {{{9}}}, {{{0}, {1}}}; //sm_80",
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{{2}, {3}}}, {{{7}}}, {{{9}}}, {{{2}, {3}}}; //sm_80",
            inout(reg64) c, inout(reg64) d, inout(reg64) e, inout(reg64) f,
            in(reg64) a[0], in(reg64) a[1], in(reg64) a[2], in(reg64) a[3], in(reg64) b[0], in(reg64) b[1], options(nomem));
        [c, d, e, f]
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = (a, b, sums);
        amdgpu_device::trap()
    }
}

/// Whether the text was loaded for sm_90a; a constant there.
#[inline(always)]
pub(super) fn is_hopper() -> bool {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: a number
    unsafe {
        let is: u32;
        core::arch::asm!("mov.u32 {0}, 0; //sm_80", "//sm_90a mov.u32 {0}, 1;", out(reg32) is, options(pure, nomem));
        amdgpu_device::workgroup::uniform(is) != 0
    }
    #[cfg(not(target_arch = "nvptx64"))]
    amdgpu_device::trap()
}

/// Lets `wgmma` see what this lane has written to workgroup memory. A barrier must follow.
#[inline(always)]
pub(super) fn show() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: a fence
    unsafe {
        core::arch::asm!("//sm_90a fence.proxy.async.shared::cta;");
    }
    #[cfg(not(target_arch = "nvptx64"))]
    amdgpu_device::trap()
}

/// Where an operand of `wgmma` is: 16 k of 64 rows.
#[derive(Clone, Copy)]
pub(super) struct Descriptor(u64);

impl Descriptor {
    /// Of rows that begin at `at` and have `line` bytes, if k is contiguous: 64 or 128. Otherwise of lines of 64 rows, with `block` bytes
    /// between those of the same k.
    #[inline(always)]
    pub(super) fn new<const ALONG_K: bool>(at: u32, line: u64, block: u64) -> Self {
        // Units of 16 bytes. Eight rows, or eight k, are a pattern of their own.
        let (swizzle, pattern) = if ALONG_K && line == 64 { (2, 32) } else { (1, 64) };
        let blocks = if ALONG_K { 0 } else { block / 16 };
        Descriptor(u64::from(at / 16) | blocks << 16 | pattern << 32 | swizzle << 62)
    }

    /// So many bytes further.
    #[inline(always)]
    pub(super) fn after(self, bytes: u64) -> Self {
        Descriptor(self.0 + bytes / 16)
    }

    /// 16 k further.
    #[inline(always)]
    pub(super) fn next<const ALONG_K: bool>(self) -> Self {
        self.after(if ALONG_K { 32 } else { 2048 })
    }
}

/// `wgmma` for 128 rows by 128 rows over 32 k.
#[cfg(target_arch = "nvptx64")]
macro_rules! wgmma {
    ($ty:literal, $across_a:literal, $across_b:literal, $s:ident, $a:ident, $b:ident; $($i:literal)*) => {
        core::arch::asm!(
            "//sm_90a {{",
            "//sm_90a .reg .pred all;",
            "//sm_90a setp.ne.b32 all, {128}, 0;",
            "//sm_90a wgmma.fence.sync.aligned;",
            wgmma!(@ lower, $ty, $across_a, $across_b, "{129}", "{133}"),
            wgmma!(@ upper, $ty, $across_a, $across_b, "{131}", "{133}"),
            wgmma!(@ lower, $ty, $across_a, $across_b, "{130}", "{134}"),
            wgmma!(@ upper, $ty, $across_a, $across_b, "{132}", "{134}"),
            "//sm_90a wgmma.commit_group.sync.aligned;",
            "//sm_90a }}",
            $(inout(reg32) $s[$i / 64][$i % 64 / 4][$i % 4],)*
            in(reg32) 1_u32,
            in(reg64) $a[0][0].0, in(reg64) $a[0][1].0, in(reg64) $a[1][0].0, in(reg64) $a[1][1].0,
            in(reg64) $b[0].0, in(reg64) $b[1].0,
        )
    };
    (@ lower, $ty:literal, $across_a:literal, $across_b:literal, $a:literal, $b:literal) => {
        concat!("//sm_90a wgmma.mma_async.sync.aligned.m64n128k16.f32.", $ty, ".", $ty, " {{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}, {12}, {13}, {14}, {15}, {16}, {17}, {18}, {19}, {20}, {21}, {22}, {23}, {24}, {25}, {26}, {27}, {28}, {29}, {30}, {31}, {32}, {33}, {34}, {35}, {36}, {37}, {38}, {39}, {40}, {41}, {42}, {43}, {44}, {45}, {46}, {47}, {48}, {49}, {50}, {51}, {52}, {53}, {54}, {55}, {56}, {57}, {58}, {59}, {60}, {61}, {62}, {63}}}, ",
            $a, ", ", $b, ", all, 1, 1, ", $across_a, ", ", $across_b, ";")
    };
    (@ upper, $ty:literal, $across_a:literal, $across_b:literal, $a:literal, $b:literal) => {
        concat!("//sm_90a wgmma.mma_async.sync.aligned.m64n128k16.f32.", $ty, ".", $ty, " {{{64}, {65}, {66}, {67}, {68}, {69}, {70}, {71}, {72}, {73}, {74}, {75}, {76}, {77}, {78}, {79}, {80}, {81}, {82}, {83}, {84}, {85}, {86}, {87}, {88}, {89}, {90}, {91}, {92}, {93}, {94}, {95}, {96}, {97}, {98}, {99}, {100}, {101}, {102}, {103}, {104}, {105}, {106}, {107}, {108}, {109}, {110}, {111}, {112}, {113}, {114}, {115}, {116}, {117}, {118}, {119}, {120}, {121}, {122}, {123}, {124}, {125}, {126}, {127}}}, ",
            $a, ", ", $b, ", all, 1, 1, ", $across_a, ", ", $across_b, ";")
    };
    ($ty:literal, $across_a:literal, $across_b:literal, $s:ident, $a:ident, $b:ident) => {
        wgmma!($ty, $across_a, $across_b, $s, $a, $b; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 87 88 89 90 91 92 93 94 95 96 97 98 99 100 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117 118 119 120 121 122 123 124 125 126 127)
    };
}

/// Sums of 128 rows of A, in two halves, by 128 rows of B: warp w of four has rows 16 · w and on of each half, its lanes eight columns at
/// a time as for [`multiply`].
pub(super) type Wide = [[[u32; 4]; 16]; 2];

/// Waits until no more than the last `PENDING` of [`multiply_wide`] are under way.
#[inline(always)]
pub(super) fn wait_wide<const PENDING: u32>() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: instructions that have been issued
    unsafe {
        core::arch::asm!("//sm_90a wgmma.wait_group.sync.aligned {};", const PENDING);
    }
    #[cfg(not(target_arch = "nvptx64"))]
    amdgpu_device::trap()
}

/// Begins to add the products of 128 rows of A, in two halves, by 128 rows of B over 32 k.
///
/// # Safety
/// [`is_hopper`] is true. The rows lie as `copy.rs` says, and have been [shown](show). All lanes of four waves come here. Before
/// [`wait_wide`] the sums are used by nothing else, and the rows stay as they are.
#[inline(always)]
pub(super) unsafe fn multiply_wide<const BF16: bool, const A_K: bool, const B_K: bool>(
    a: [Descriptor; 2],
    b: Descriptor,
    sums: Wide,
) -> Wide {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: the caller's
    unsafe {
        let a = a.map(|half| [half, half.next::<A_K>()]);
        let b = [b, b.next::<B_K>()];
        let mut s = sums;
        match (BF16, A_K, B_K) {
            (false, true, true) => wgmma!("f16", "0", "0", s, a, b),
            (false, true, false) => wgmma!("f16", "0", "1", s, a, b),
            (false, false, true) => wgmma!("f16", "1", "0", s, a, b),
            (false, false, false) => wgmma!("f16", "1", "1", s, a, b),
            (true, true, true) => wgmma!("bf16", "0", "0", s, a, b),
            (true, true, false) => wgmma!("bf16", "0", "1", s, a, b),
            (true, false, true) => wgmma!("bf16", "1", "0", s, a, b),
            (true, false, false) => wgmma!("bf16", "1", "1", s, a, b),
        }
        s
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = (a, b, sums);
        amdgpu_device::trap()
    }
}

/// Adds the products of 16 rows by 8 rows over 16 numbers of two bytes: lane l has pair l mod 4 of the first and of the last eight k of
/// rows l div 4 and 8 + l div 4 of A, and of row l div 4 of B; sums of these rows of A with rows 2·(l mod 4) and the next of B.
#[inline(always)]
pub(super) fn multiply<const BF16: bool>(a: [u32; 4], b: [u32; 2], sums: [f32; 4]) -> [f32; 4] {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: arithmetic; the kernel has no branches in which lanes of a wave part
    unsafe {
        let [mut c, mut d, mut e, mut f] = sums.map(f32::to_bits);
        if BF16 {
            core::arch::asm!("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {{{0}, {1}, {2}, {3}}}, {{{4}, {5}, {6}, {7}}}, \
                {{{8}, {9}}}, {{{0}, {1}, {2}, {3}}};",
                inout(reg32) c, inout(reg32) d, inout(reg32) e, inout(reg32) f,
                in(reg32) a[0], in(reg32) a[1], in(reg32) a[2], in(reg32) a[3], in(reg32) b[0], in(reg32) b[1], options(nomem));
        } else {
            core::arch::asm!("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{{0}, {1}, {2}, {3}}}, {{{4}, {5}, {6}, {7}}}, \
                {{{8}, {9}}}, {{{0}, {1}, {2}, {3}}};",
                inout(reg32) c, inout(reg32) d, inout(reg32) e, inout(reg32) f,
                in(reg32) a[0], in(reg32) a[1], in(reg32) a[2], in(reg32) a[3], in(reg32) b[0], in(reg32) b[1], options(nomem));
        }
        [c, d, e, f].map(f32::from_bits)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = (a, b, sums);
        amdgpu_device::trap()
    }
}
