//! What the driver knows of each target's card beyond [`amdgpu_emulator::specs`].

use amdgpu_emulator::specs::{Specs, specs};
use amdgpu_emulator::{Features, Generation, Gfx};

/// A card as the driver's topology describes it.
pub struct Card {
    /// Its target.
    pub gfx: Gfx,
    /// The numbers that programs see through HIP.
    pub specs: Specs,
    /// PCI device number of the card that the facts are of; 0 where it would stand for another target.
    pub device_id: u32,
    /// Compute units.
    pub compute_units: u32,
    /// SIMD units of a compute unit.
    pub simds: u32,
    /// Shader arrays, among which the compute units are divided without remainder.
    pub arrays: u32,
    /// Shader arrays of an engine.
    pub arrays_per_engine: u32,
}

impl Card {
    /// The card of a target.
    pub fn of(gfx: Gfx) -> Card {
        let specs = specs(gfx);
        let cdna = gfx.generation() == Generation::Cdna;
        // A multiprocessor of RDNA is two compute units.
        let compute_units = specs.multiprocessors * if cdna { 1 } else { 2 };
        let arrays = [32, 16, 10, 8, 6, 4, 3, 2]
            .into_iter()
            .find(|&n| compute_units.is_multiple_of(n) && n <= if cdna { 32 } else { 8 });
        Card {
            gfx,
            device_id: device_id(gfx),
            compute_units,
            simds: if cdna { 4 } else { 2 },
            arrays: arrays.unwrap_or(1),
            arrays_per_engine: 1,
            specs,
        }
    }

    /// Bytes of its memory.
    pub fn memory_bytes(&self) -> u64 {
        self.specs.memory_bytes
    }

    /// `gfx_target_version`: the target's major number times 10,000, its minor one times 100, and its stepping.
    pub fn version(&self) -> u32 {
        let digits = self.gfx.name().trim_start_matches("gfx");
        let (major, rest) = digits.split_at(digits.len() - 2);
        let hex = |text: &str| u32::from_str_radix(text, 16).unwrap_or_default();
        major.parse::<u32>().unwrap_or_default() * 10_000 + hex(&rest[..1]) * 100 + hex(&rest[1..])
    }

    /// `capability`: watch points, doorbells that take 64-bit packet numbers, and error correction.
    pub fn capability(&self) -> u32 {
        const WATCH_POINTS: u32 = 1 << 7 | 2 << 8;
        const DOORBELL_64: u32 = 2 << 12;
        const SRAM_ECC: u32 = 1 << 26;
        let ecc = Features::of_device(self.gfx).sramecc == Some(true);
        WATCH_POINTS | DOORBELL_64 | if ecc { SRAM_ECC } else { 0 }
    }

    /// The number of its family, as the kernel's graphics driver has them (`AMDGPU_FAMILY_…`).
    pub fn family(&self) -> u32 {
        match self.gfx.generation() {
            Generation::Cdna => 141,
            Generation::Gfx10 => 143,
            Generation::Gfx11 if self.gfx.isa() == Gfx::Gfx1151 => 150,
            Generation::Gfx11 => 145,
            Generation::Gfx12 => 152,
        }
    }

    /// `GB_ADDR_CONFIG`, from which the runtime works out the layout of images: pipes, banks and their interleaving, as the
    /// kernel's driver sets them on Vega 10 and reads them on Navi 21.
    pub fn address_config(&self) -> u32 {
        match self.gfx.generation() {
            Generation::Cdna => 0x2a11_4042,
            _ => 0x545,
        }
    }

    /// The name that programs show.
    pub fn marketing_name(&self) -> String {
        format!("AMDGPU emulator {} ({})", self.gfx, self.specs.card)
    }
}

/// PCI device numbers, as the public lists have them.
const fn device_id(gfx: Gfx) -> u32 {
    match gfx {
        Gfx::Gfx906 => 0x66a1,
        Gfx::Gfx908 => 0x738c,
        Gfx::Gfx90a => 0x7408,
        Gfx::Gfx942 => 0x74a1,
        Gfx::Gfx950 => 0x75a3,
        Gfx::Gfx1010 => 0x731f,
        Gfx::Gfx1011 => 0x7362,
        Gfx::Gfx1012 => 0x7340,
        Gfx::Gfx1030 => 0x73bf,
        Gfx::Gfx1031 => 0x73df,
        Gfx::Gfx1032 => 0x73ff,
        Gfx::Gfx1034 => 0x743f,
        Gfx::Gfx1100 => 0x744c,
        Gfx::Gfx1101 => 0x747e,
        Gfx::Gfx1102 => 0x7480,
        Gfx::Gfx1200 => 0x7590,
        Gfx::Gfx1201 => 0x7550,
        // Graphics in processors, which are shown as cards of their own here.
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_the_driver_s() {
        for (gfx, version) in [
            (Gfx::Gfx90a, 90_010),
            (Gfx::Gfx906, 90_006),
            (Gfx::Gfx942, 90_402),
            (Gfx::Gfx1030, 100_300),
            (Gfx::Gfx1201, 120_001),
        ] {
            assert_eq!(Card::of(gfx).version(), version);
        }
    }

    #[test]
    fn compute_units_divide_among_the_arrays() {
        for gfx in Gfx::ALL {
            let card = Card::of(gfx);
            assert!(card.compute_units.is_multiple_of(card.arrays), "{gfx}");
        }
        assert_eq!(Card::of(Gfx::Gfx1030).compute_units, 80);
    }
}
