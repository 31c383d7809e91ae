//! Read-modify-write operations, shared by global memory, LDS and buffers.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::valu;
use crate::memory::pointer;

/// What an atomic instruction does. `old` is what memory holds, `data` the operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Operation {
    Swap,
    CmpSwap,
    /// Compares as floats: zeros are equal, NaNs are not.
    CmpSwapF,
    Add,
    Sub,
    RSub,
    /// `old - data`, at least 0 (csub: the old value stays where that would be negative is `CondSub`).
    SubClamp,
    CondSub,
    MinI,
    MinU,
    MaxI,
    MaxU,
    And,
    Or,
    Xor,
    /// `old & !data | compare`: masked or; the mask comes first.
    MaskOr,
    Inc,
    Dec,
    AddF,
    MinF,
    MaxF,
    /// As `MinF`/`MaxF` with IEEE 754-2019 minimumNumber: a NaN loses.
    PkAddF16,
    PkAddBf16,
    /// DS only: the old value comes back, memory gets `data` if it was below the limit.
    Wrap,
}

/// The operation and width that a mnemonic names, without its `global_atomic_`, `ds_` … prefix: `add_u32`, `smin`,
/// `cmpswap_x2`, `pk_add_f16`, `min_num_f64`.
pub(crate) fn parse(name: &str) -> Option<(Operation, bool)> {
    use Operation::*;
    let (base, wide) = if let Some(base) = name.strip_suffix("_x2") {
        (base, true)
    } else if let Some((base, _)) =
        name.rsplit_once('_').filter(|(_, ty)| ["u64", "i64", "b64", "f64"].contains(ty))
    {
        (base, true)
    } else {
        (name, false)
    };
    let ty = name.rsplit('_').next().unwrap_or_default();
    let base = base
        .strip_suffix("_u32")
        .or_else(|| base.strip_suffix("_i32"))
        .or_else(|| base.strip_suffix("_b32"))
        .unwrap_or(base);
    let signed = ty.starts_with('i');
    let float = ty.starts_with('f') && !["fadd", "fmin", "fmax", "fcmpswap"].contains(&base);
    let base = if float { base.strip_suffix("_f32").unwrap_or(base) } else { base };
    let operation = match base {
        "swap" | "wrxchg" | "storexchg" => Swap,
        "cmpswap" | "cmpst" | "cmpstore" if float => CmpSwapF,
        "cmpswap" | "cmpst" | "cmpstore" => CmpSwap,
        "fcmpswap" => CmpSwapF,
        "add" if float => AddF,
        "add" => Add,
        "sub" => Sub,
        "rsub" => RSub,
        "csub" | "sub_clamp" | "csub_clamp" => SubClamp,
        "cond_sub" => CondSub,
        "min" | "min_num" if float => MinF,
        "max" | "max_num" if float => MaxF,
        "min" if signed => MinI,
        "max" if signed => MaxI,
        "smin" => MinI,
        "smax" => MaxI,
        "min" | "umin" => MinU,
        "max" | "umax" => MaxU,
        "and" => And,
        "or" => Or,
        "xor" => Xor,
        "mskor" => MaskOr,
        "inc" => Inc,
        "dec" => Dec,
        "fadd" | "add_f32" => AddF,
        "fmin" => MinF,
        "fmax" => MaxF,
        "pk_add_f16" | "pk_add_rtn_f16" => PkAddF16,
        "pk_add_bf16" | "pk_add_rtn_bf16" => PkAddBf16,
        _ => return None,
    };
    Some((operation, wide))
}

/// What operations do to an integer type and the float type of its width; those behind the types have one width alone.
macro_rules! apply {
    (
        $(#[$doc:meta])*
        $name:ident($old:ident, $data:ident, $compare:ident): $uint:ty, $int:ty, $float:ty {
            $($of_this_width:tt)*
        }
    ) => {
        $(#[$doc])*
        #[inline]
        pub fn $name(self, $old: $uint, $data: $uint, $compare: $uint) -> $uint {
            use Operation::*;
            // The smaller number; a NaN loses against a number, and -0 is below +0.
            let min = |a: $float, b: $float| {
                if a.is_nan() || !b.is_nan() && a.total_cmp(&b).is_gt() { b } else { a }
            };
            let float = <$float>::from_bits;
            match self {
                Swap => $data,
                CmpSwap => if $old == $compare { $data } else { $old },
                CmpSwapF => if float($old) == float($compare) { $data } else { $old },
                Add => $old.wrapping_add($data),
                Sub => $old.wrapping_sub($data),
                RSub => $data.wrapping_sub($old),
                SubClamp => $old.saturating_sub($data),
                CondSub => $old.checked_sub($data).unwrap_or($old),
                MinI => ($old as $int).min($data as $int) as $uint,
                MinU => $old.min($data),
                MaxI => ($old as $int).max($data as $int) as $uint,
                MaxU => $old.max($data),
                And => $old & $data,
                Or => $old | $data,
                Xor => $old ^ $data,
                MaskOr => $old & !$data | $compare,
                Inc => if $old >= $data { 0 } else { $old + 1 },
                Dec => if $old == 0 || $old > $data { $data } else { $old - 1 },
                AddF => (float($old) + float($data)).to_bits(),
                MinF => min(float($old), float($data)).to_bits(),
                MaxF => (-min(-float($old), -float($data))).to_bits(),
                $($of_this_width)*
            }
        }
    };
}

impl Operation {
    /// Whether the result depends on the order of the accesses to one address, even where none returns the old
    /// value.
    pub fn is_ordered(self) -> bool {
        use Operation::*;
        !matches!(self, Add | Sub | MinI | MinU | MaxI | MaxU | And | Or | Xor)
    }

    apply! {
        /// The new value of a dword.
        apply32(old, data, compare): u32, i32, f32 {
            PkAddF16 => halves(old, data, valu::add_f16),
            PkAddBf16 => halves(old, data, valu::add_bf16),
            Wrap => if old >= data { old - data } else { old.wrapping_add(compare) },
        }
    }

    apply! {
        /// The new value of a pair of dwords.
        apply64(old, data, compare): u64, i64, f64 {
            PkAddF16 | PkAddBf16 | Wrap => old,
        }
    }

    /// Applies the operation to a dword of global memory and gives its old value.
    ///
    /// # Safety
    /// `address` is a multiple of 4 within an allocation.
    pub unsafe fn global32(self, address: u64, data: u32, compare: u32) -> u32 {
        // SAFETY: aligned and mapped, by the caller's promise; the emulator accesses what kernels share only
        // through raw pointers and atomics.
        let cell = unsafe { AtomicU32::from_ptr(pointer(address).cast()) };
        if self == Operation::Add {
            return cell.fetch_add(data, Ordering::SeqCst);
        }
        cell.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| Some(self.apply32(old, data, compare)))
            .unwrap_or_else(|old| old)
    }

    /// Applies the operation to two dwords of global memory and gives their old value.
    ///
    /// # Safety
    /// `address` is a multiple of 8 within an allocation.
    pub unsafe fn global64(self, address: u64, data: u64, compare: u64) -> u64 {
        // SAFETY: as in `global32`.
        let cell = unsafe { AtomicU64::from_ptr(pointer(address).cast()) };
        cell.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| Some(self.apply64(old, data, compare)))
            .unwrap_or_else(|old| old)
    }
}

/// The sums of both halves of a packed operand.
fn halves(old: u32, data: u32, add: impl Fn(u16, u16) -> u16) -> u32 {
    let low = add(old as u16, data as u16);
    let high = add((old >> 16) as u16, (data >> 16) as u16);
    u32::from(low) | u32::from(high) << 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mnemonics_name_operation_and_width() {
        use Operation::*;
        for (name, operation, wide) in [
            ("add", Add, false),
            ("add_x2", Add, true),
            ("add_u32", Add, false),
            ("add_u64", Add, true),
            ("add_f32", AddF, false),
            ("add_f64", AddF, true),
            ("fadd", AddF, false),
            ("smin", MinI, false),
            ("umax_x2", MaxU, true),
            ("min_i64", MinI, true),
            ("max_u32", MaxU, false),
            ("min_f32", MinF, false),
            ("max_f64", MaxF, true),
            ("min_num_f32", MinF, false),
            ("cmpswap_b32", CmpSwap, false),
            ("cmpswap_x2", CmpSwap, true),
            ("swap_b64", Swap, true),
            ("pk_add_f16", PkAddF16, false),
            ("pk_add_bf16", PkAddBf16, false),
            ("and_b32", And, false),
            ("inc", Inc, false),
            ("csub_u32", SubClamp, false),
        ] {
            assert_eq!(parse(name), Some((operation, wide)), "{name}");
        }
        assert_eq!(parse("sub_and_dance"), None);
    }

    #[test]
    fn inc_and_dec_wrap_at_the_operand() {
        assert_eq!(Operation::Inc.apply32(4, 5, 0), 5);
        assert_eq!(Operation::Inc.apply32(5, 5, 0), 0);
        assert_eq!(Operation::Inc.apply32(9, 5, 0), 0);
        assert_eq!(Operation::Dec.apply32(0, 5, 0), 5);
        assert_eq!(Operation::Dec.apply32(6, 5, 0), 5);
        assert_eq!(Operation::Dec.apply32(5, 5, 0), 4);
    }

    #[test]
    fn float_minimum_prefers_numbers_and_negative_zero() {
        let bits = |value: f32| value.to_bits();
        assert_eq!(Operation::MinF.apply32(bits(f32::NAN), bits(1.0), 0), bits(1.0));
        assert_eq!(Operation::MinF.apply32(bits(0.0), bits(-0.0), 0), bits(-0.0));
        assert_eq!(Operation::MaxF.apply32(bits(-0.0), bits(0.0), 0), bits(0.0));
        assert_eq!(Operation::MaxF.apply32(bits(2.0), bits(f32::NAN), 0), bits(2.0));
    }
}
