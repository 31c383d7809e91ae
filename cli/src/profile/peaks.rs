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
            Gfx::Gfx90a => ("Instinct MI250X, one die", 23.9, Some(191.5), 1638.4),
            Gfx::Gfx942 => ("Instinct MI300X", 163.4, Some(1307.4), 5325.0),
            Gfx::Gfx1011 => ("Radeon Pro V520", 7.373, None, 512.0),
            Gfx::Gfx1030 => ("Radeon RX 6900 XT", 23.04, None, 512.0),
            Gfx::Gfx1100 => ("Radeon RX 7900 XTX", 61.4, Some(122.8), 960.0),
            Gfx::Gfx1151 => ("Ryzen AI Max+ 395", 29.7, Some(59.4), 256.0),
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
