//! Cast: one rounding to nearest, ties to even; saturation towards integers and f8e4m3; wrapping among integers.

use super::{DType, Value};

/// One element in another type.
pub fn cast(x: Value, to: DType) -> Value {
    match (x.dtype().is_float(), to) {
        (true, _) => Value::from_f64(to, x.to_f64()),
        (false, DType::F64) => Value::from_f64(to, x.to_int() as f64),
        (false, to) if to.is_float() => Value::from_f64(to, to_odd(x.to_int())),
        (false, to) => Value::from_int(to, x.to_int()),
    }
}

/// An integer of up to 64 bits as an f64 that rounds to any narrower type as the integer does: what f64 cannot hold
/// makes its last bit odd.
fn to_odd(x: i128) -> f64 {
    let magnitude = x.unsigned_abs();
    let spare = (128 - magnitude.leading_zeros()).saturating_sub(53);
    let kept = magnitude >> spare;
    let lost = u128::from(kept << spare != magnitude);
    let size = ((kept | lost) << spare) as f64;
    if x < 0 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_integer_is_rounded_once() {
        // Just above the middle between two f32: by way of f64 it would be a tie.
        let x = (1 << 62) + (1 << 38) + 1;
        assert_eq!(cast(Value::from_int(DType::I64, x), DType::F32).bits(), u64::from((x as f32).to_bits()));
        for x in [i64::MIN, i64::MAX, -1, 0, 1 << 53, (1 << 53) + 1] {
            let float = cast(Value::from_int(DType::I64, x.into()), DType::F32);
            assert_eq!(float.bits(), u64::from((x as f32).to_bits()), "{x}");
        }
    }

    #[test]
    fn floats_saturate_and_integers_wrap() {
        let of = |x: f64, to| cast(Value::from_f64(DType::F64, x), to).to_int();
        assert_eq!([of(300.0, DType::U8), of(-1.0, DType::U8), of(f64::NAN, DType::I64)], [255, 0, 0]);
        assert_eq!(cast(Value::from_int(DType::U32, 300), DType::U8).to_int(), 44);
        assert_eq!(cast(Value::from_int(DType::I32, 500), DType::F8E4M3).to_f64(), 448.0);
    }
}
