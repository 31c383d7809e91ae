//! The kernels, their launches, and what was measured, with its source.

/// An argument.
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Argument {
    /// Memory of so many bytes, zeros.
    Memory(u64),
    U32(u32),
    F32(f32),
    F64(f64),
}

use Argument::{F32, F64, Memory, U32};

/// A launch that was measured.
#[allow(missing_docs, reason = "as for a launch")]
pub struct Case {
    /// What it counts under.
    pub group: &'static str,
    pub name: String,
    /// The kernel that it is, apart from its size.
    pub variant: String,
    /// Variants are compared where this is the same.
    pub rank: String,
    pub card: &'static str,
    pub clock_mhz: Option<f64>,
    pub source: &'static str,
    pub defines: Vec<String>,
    pub kernel: &'static str,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub lds: u32,
    pub arguments: Vec<Argument>,
    /// Workgroups that are executed.
    pub workgroups: u64,
    /// Nothing is in the caches.
    pub cold: bool,
    /// Such a launch is done so often.
    pub repeat: f64,
    /// What was measured.
    pub seconds: f64,
}

/// All of them.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    streams(&mut cases);
    sgemm(&mut cases);
    laplacian(&mut cases);
    wmma(&mut cases);
    gemv(&mut cases);
    cases
}

/// github.com/RRZE-HPC/gpu-benches, gpu-stream: f64, 2^28 elements, a workgroup's size, two of which LDS lets on a compute
/// unit. GB/s of init, read, scale, triad, and of stencils of three and five points. The first four calibrate.
fn streams(cases: &mut Vec<Case>) {
    let kernels: [(&str, f64, usize); 6] = [
        ("init", 1.0, 1),
        ("read", 1.0, 2),
        ("scale", 2.0, 2),
        ("triad", 4.0, 4),
        ("stencil3", 2.0, 2),
        ("stencil5", 2.0, 2),
    ];
    let measured: &[(&str, u32, [f64; 6])] = &[
        ("RX 6900 XT", 128, [503.0, 505.0, 459.0, 430.0, 458.0, 0.0]),
        ("RX 6900 XT", 256, [501.0, 506.0, 457.0, 431.0, 456.0, 456.0]),
        ("RX 6900 XT", 512, [500.0, 505.0, 457.0, 433.0, 455.0, 456.0]),
        ("MI210", 128, [487.0, 345.0, 463.0, 825.0, 447.0, 437.0]),
        ("MI210", 256, [907.0, 662.0, 844.0, 1144.0, 796.0, 0.0]),
        ("MI210", 512, [1446.0, 1159.0, 1230.0, 1217.0, 0.0, 1029.0]),
        ("MI210", 1024, [1511.0, 1370.0, 1362.0, 1225.0, 0.0, 1143.0]),
        ("MI300X", 256, [3377.0, 1959.0, 2729.0, 3740.0, 0.0, 2336.0]),
        ("MI300X", 512, [4319.0, 3098.0, 3427.0, 3169.0, 0.0, 3104.0]),
        ("MI300X", 1024, [4801.0, 4199.0, 3997.0, 3866.0, 4146.0, 3677.0]),
    ];
    let elements = 1u64 << 28;
    for &(card, size, figures) in measured {
        for ((kernel, streams, memories), figure) in kernels.into_iter().zip(figures) {
            if figure == 0.0 {
                continue;
            }
            let bytes = elements as f64 * 8.0 * streams;
            let test = kernel.starts_with("stencil");
            let mut arguments = vec![Memory((elements + 8) * 8); memories];
            arguments.push(U32(size));
            let lds = if card.starts_with("RX") { 30 << 10 } else { 32 << 10 };
            cases.push(Case {
                group: if test { "stencil in a row" } else { "stream (calibration)" },
                name: format!("{kernel}, {size} work-items"),
                variant: kernel.to_owned(),
                rank: format!("{size} work-items"),
                card,
                clock_mhz: None,
                source: "stream",
                defines: vec![format!("SIZE_GROUP=SIZE({size})")],
                kernel: match kernel {
                    "init" => "init",
                    "read" => "read",
                    "scale" => "scale",
                    "triad" => "triad",
                    "stencil3" => "stencil3",
                    _ => "stencil5",
                },
                grid: [(elements / u64::from(size)) as u32, 1, 1],
                block: [size, 1, 1],
                lds,
                arguments,
                workgroups: 16 * 304 * 256 / u64::from(size),
                cold: false,
                repeat: 1.0,
                seconds: bytes / figure / 1e9,
            });
        }
    }
}

/// seb-v.github.io, "Optimizing Matrix Multiplication on RDNA3": 4096³, RX 7900 XTX.
fn sgemm(cases: &mut Vec<Case>) {
    let n = 4096u32;
    let of = |name: &str, kernel, grid: [u32; 2], block: [u32; 2], workgroups, milliseconds: f64| Case {
        group: "matrix product",
        name: name.to_owned(),
        variant: name.to_owned(),
        rank: String::new(),
        card: "RX 7900 XTX",
        clock_mhz: None,
        source: "sgemm",
        defines: Vec::new(),
        kernel,
        grid: [grid[0], grid[1], 1],
        block: [block[0], block[1], 1],
        lds: 0,
        arguments: [
            [Memory(u64::from(n) * u64::from(n) * 4); 3].to_vec(),
            vec![U32(n), U32(n), U32(n), F32(1.0), F32(0.5)],
        ]
        .concat(),
        workgroups,
        cold: false,
        repeat: 1.0,
        seconds: milliseconds * 1e-3,
    };
    cases.push(of("f32, an output each, from memory", "k1", [n / 16; 2], [16; 2], 384, 136.006));
    cases.push(of("f32, an output each, LDS", "k2", [n / 32; 2], [32; 2], 192, 34.2059));
    cases.push(of("f32, 64 outputs each", "k4", [n / 128; 2], [256, 1], 240, 5.3772));
}

/// AMD's lab notes, finite difference methods, parts 1 to 4: GB/s, two transfers of 8 bytes a point.
fn laplacian(cases: &mut Vec<Case>) {
    let gcd = "MI250X, one GCD";
    let measured: &[(&str, &str, u32, [u32; 3], f64)] = &[
        (gcd, "k1", 1, [512; 3], 808.1),
        (gcd, "k3m2", 2, [512; 3], 1034.3),
        (gcd, "k3m4", 4, [512; 3], 1082.9),
        (gcd, "k3m8", 8, [512; 3], 1107.1),
        (gcd, "k5m8", 8, [512; 3], 1163.7),
        (gcd, "k5m8", 8, [256; 3], 1013.0),
        ("MI210", "k5m8", 8, [512, 512, 256], 1160.0),
        ("MI210", "k5m8", 8, [768, 768, 512], 722.0),
        ("MI210", "k5m8", 8, [1024, 768, 768], 581.0),
        ("RX 6900 XT", "k5m16", 16, [512; 3], 418.0),
        ("RX 6900 XT", "k5m16", 16, [1024, 1024, 768], 415.0),
        ("RX 7900 XTX", "k5m8", 8, [256; 3], 729.0),
        ("RX 7900 XTX", "k5m8", 8, [512; 3], 841.0),
        ("RX 7900 XTX", "k5m8", 8, [1024; 3], 746.0),
    ];
    for &(card, kernel, per, [x, y, z], figure) in measured {
        let points = u64::from(x) * u64::from(y) * u64::from(z);
        let grid = [x / 256, y / per, z];
        let of_plane = u64::from(grid[0] * grid[1]);
        cases.push(Case {
            group: "Laplacian",
            name: format!("{kernel}, {x}×{y}×{z}"),
            variant: kernel.to_owned(),
            rank: format!("{x} {y} {z}"),
            card,
            clock_mhz: None,
            source: "laplacian",
            defines: Vec::new(),
            kernel,
            grid,
            block: [256, 1, 1],
            lds: 0,
            arguments: [
                [Memory(points * 8); 2].to_vec(),
                vec![U32(x), U32(y), U32(z), F64(1.0), F64(1.0), F64(1.0), F64(-6.0)],
            ]
            .concat(),
            // Planes until the caches are full, and some more.
            workgroups: (of_plane * u64::from(z).min(12)).max(8192),
            cold: false,
            repeat: 1.0,
            seconds: points as f64 * 16.0 / figure / 1e9,
        });
    }
}

/// github.com/adelj88/hip_wmma_samples, RX 7900 GRE: the first kernel, C in tiles of 16 by 16, a wave each.
fn wmma(cases: &mut Vec<Case>) {
    let (n, milliseconds) = (2048u32, 2.95);
    cases.push(Case {
        group: "WMMA",
        name: format!("a tile for each wave, {n}³"),
        variant: "naive".to_owned(),
        rank: String::new(),
        card: "RX 7900 GRE",
        clock_mhz: None,
        source: "wmma",
        defines: Vec::new(),
        kernel: "naive",
        grid: [n / 64, n / 64, 1],
        block: [128, 4, 1],
        lds: 0,
        arguments: [[Memory(u64::from(n) * u64::from(n) * 2); 3].to_vec(), vec![U32(n); 3]].concat(),
        workgroups: 160,
        cold: false,
        repeat: 1.0,
        seconds: milliseconds * 1e-3,
    });
}

/// github.com/warpfront/hipfire, research of September 2026: rows of 4-bit weights, a wave for each, RX 7900 XTX.
fn gemv(cases: &mut Vec<Case>) {
    let measured: &[(&str, u32, u32, f64)] = &[
        ("packed_read", 5120, 5120, 20.2715),
        ("split_read", 5120, 5120, 23.2472),
        ("packed_read", 17408, 5120, 59.3447),
        ("packed", 5120, 17408, 60.422),
        ("split", 5120, 17408, 65.1223),
        ("packed_read", 5120, 17408, 61.7678),
        ("split_read", 5120, 17408, 65.547),
        ("split", 248_320, 5120, 742.9232),
        ("packed_read", 248_320, 5120, 806.2366),
        ("split_read", 248_320, 5120, 774.2389),
    ];
    for &(kernel, m, k, microseconds) in measured {
        let blocks = u64::from(m) * u64::from(k) / 256;
        cases.push(Case {
            group: "4-bit vector product",
            name: format!("{kernel}, {m}×{k}"),
            variant: kernel.to_owned(),
            rank: format!("{m} {k}"),
            card: "RX 7900 XTX",
            clock_mhz: None,
            source: "gemv",
            defines: Vec::new(),
            kernel,
            grid: [m, 1, 1],
            block: [32, 1, 1],
            lds: 0,
            arguments: vec![
                Memory(blocks * 136),
                Memory(blocks * 8),
                Memory(u64::from(k) * 4),
                Memory(u64::from(m) * 4),
                U32(k),
            ],
            workgroups: 17408,
            cold: true,
            repeat: 1.0,
            seconds: microseconds * 1e-6,
        });
    }
}
