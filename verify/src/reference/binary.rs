//! Binary: arithmetic with one rounding, comparisons, the larger and the smaller of two.

use super::{DType, Value};
use std::cmp::Ordering;

/// `add`, `sub`, `mul`, `div`, `maximum` or `minimum` of two elements; `None` for any other name.
pub fn arithmetic(name: &str, a: Value, b: Value) -> Option<Value> {
    Some(match name {
        "add" => a + b,
        "sub" => a - b,
        "mul" => a * b,
        "div" => a / b,
        "maximum" => extremum(a, b, Ordering::Greater),
        "minimum" => extremum(a, b, Ordering::Less),
        _ => return None,
    })
}

/// `eq`, `ne`, `lt`, `le`, `gt` or `ge` of two elements, as IEEE 754 says it for floats: 1 or 0, of type u8; `None`
/// for any other name.
pub fn comparison(name: &str, a: Value, b: Value) -> Option<Value> {
    let order = order(a, b);
    let holds = match name {
        "eq" => order == Some(Ordering::Equal),
        "ne" => order != Some(Ordering::Equal),
        "lt" => order == Some(Ordering::Less),
        "le" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        "gt" => order == Some(Ordering::Greater),
        "ge" => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        _ => return None,
    };
    Some(Value::from_int(DType::U8, holds.into()))
}

/// The larger or the smaller of two. −0 is less than 0. f16 and bf16 keep a NaN, the other floats prefer a number.
pub fn extremum(a: Value, b: Value, first: Ordering) -> Value {
    let keeps_nan = matches!(a.dtype(), DType::F16 | DType::Bf16);
    match order(a, b) {
        None if a.is_nan() == keeps_nan => a,
        None => b,
        Some(Ordering::Equal) if a.dtype().is_float() => {
            let negative = |x: Value| x.to_f64().is_sign_negative();
            if negative(a) == (first == Ordering::Less) { a } else { b }
        }
        Some(order) => {
            if order == first {
                a
            } else {
                b
            }
        }
    }
}

fn order(a: Value, b: Value) -> Option<Ordering> {
    if a.dtype().is_float() { a.to_f64().partial_cmp(&b.to_f64()) } else { Some(a.to_int().cmp(&b.to_int())) }
}
