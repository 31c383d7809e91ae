//! What a card of each target can do at most.

use amdgpu_emulator::Gfx;
use serde::Serialize;

/// A roofline's roofs.
#[derive(Clone, Serialize)]
pub struct Peaks {
    /// Whose numbers they are.
    pub of: String,
    /// Vector operations per second, a fused multiply-add counted as two.
    pub operations: f64,
    /// Operations of matrix instructions on f16 per second; `None` where there are no such instructions.
    pub matrix_operations: Option<f64>,
    /// Bytes of device memory per second.
    pub bandwidth: f64,
}

impl Peaks {
    /// As AMD states them on its product pages and in the white papers of CDNA 2 and 3: peak single precision
    /// performance, peak half precision matrix performance (without sparsity), peak memory bandwidth.
    pub fn of(gfx: Gfx) -> Peaks {
        let (card, tera, matrix, giga) = match gfx {
            Gfx::Gfx906 => ("Instinct MI60", 14.7, None, 1024.0),
            Gfx::Gfx908 => ("Instinct MI100", 23.1, Some(184.6), 1228.8),
            Gfx::Gfx90a => ("Instinct MI250X, one die", 23.9, Some(191.5), 1638.4),
            Gfx::Gfx942 => ("Instinct MI300X", 163.4, Some(1307.4), 5325.0),
            Gfx::Gfx950 => ("Instinct MI355X", 157.3, Some(2516.6), 8000.0),
            Gfx::Gfx1010 => ("Radeon RX 5700 XT", 9.75, None, 448.0),
            Gfx::Gfx1011 => ("Radeon Pro V520", 7.373, None, 512.0),
            Gfx::Gfx1012 => ("Radeon RX 5500 XT", 5.2, None, 224.0),
            Gfx::Gfx1030 => ("Radeon RX 6900 XT", 23.04, None, 512.0),
            Gfx::Gfx1031 => ("Radeon RX 6700 XT", 13.21, None, 384.0),
            Gfx::Gfx1032 => ("Radeon RX 6600 XT", 10.6, None, 256.0),
            Gfx::Gfx1033 => ("Steam Deck", 1.6, None, 88.0),
            Gfx::Gfx1034 => ("Radeon RX 6500 XT", 5.77, None, 143.9),
            Gfx::Gfx1035 => ("Radeon 680M", 3.69, None, 102.4),
            Gfx::Gfx1036 => ("Ryzen 7000 graphics", 0.56, None, 83.2),
            Gfx::Gfx1100 => ("Radeon RX 7900 XTX", 61.4, Some(122.8), 960.0),
            Gfx::Gfx1101 => ("Radeon RX 7800 XT", 37.3, Some(74.6), 624.1),
            Gfx::Gfx1102 => ("Radeon RX 7600", 21.75, Some(43.5), 288.0),
            Gfx::Gfx1103 => ("Radeon 780M", 8.3, Some(16.6), 89.6),
            Gfx::Gfx1150 => ("Radeon 890M", 11.9, Some(23.8), 128.0),
            Gfx::Gfx1151 => ("Ryzen AI Max+ 395", 29.7, Some(59.4), 256.0),
            Gfx::Gfx1152 => ("Radeon 860M", 6.1, Some(12.3), 128.0),
            Gfx::Gfx1153 => ("Radeon 840M", 3.0, Some(5.9), 128.0),
            Gfx::Gfx1200 => ("Radeon RX 9060 XT", 25.6, Some(103.0), 322.3),
            Gfx::Gfx1201 => ("Radeon RX 9070 XT", 48.7, Some(195.0), 640.0),
        };
        Peaks {
            of: card.to_owned(),
            operations: tera * 1e12,
            matrix_operations: matrix.map(|tera| tera * 1e12),
            bandwidth: giga * 1e9,
        }
    }

    /// Another peak of operations, for vector and matrix instructions alike.
    pub fn set_operations(&mut self, peak: f64) {
        (self.operations, self.matrix_operations) = (peak, self.matrix_operations.map(|_| peak));
        self.of = "as given".to_owned();
    }

    /// Another bandwidth.
    pub fn set_bandwidth(&mut self, peak: f64) {
        self.bandwidth = peak;
        self.of = "as given".to_owned();
    }
}
