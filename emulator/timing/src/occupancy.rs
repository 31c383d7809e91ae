//! How much of a launch a unit holds at once.

use crate::card::Card;
use crate::record::Recorded;

/// How many of a launch's workgroups and waves are where.
#[derive(Clone, Copy, Debug)]
pub struct Occupancy {
    /// Waves that a SIMD holds.
    pub waves: u32,
    /// Workgroups that a unit holds.
    pub workgroups: u32,
}

impl Occupancy {
    /// Of a launch.
    pub fn of(card: &Card, recorded: &Recorded) -> Occupancy {
        let facts = &recorded.facts;
        let waves = facts.info.waves_per_simd(facts.gfx).max(1);
        let of_group = facts.work_items.div_ceil(facts.wave_size).max(1);
        let split = facts.is_split || card.is_cdna();
        // In CU mode a workgroup has the two SIMDs of a compute unit.
        let by_waves = if split { waves * 4 / of_group } else { waves * 2 / of_group * 2 };
        let by_lds = (card.lds() / facts.allocated_lds().max(1)).max(1);
        let most = if card.is_cdna() { 16 } else { 32 };
        let most = if of_group == 1 { u32::MAX } else { most };
        Occupancy { waves, workgroups: by_waves.min(by_lds).min(most).max(1) }
    }
}
