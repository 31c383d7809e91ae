//! Ternary: one of two elements.

use super::Value;

/// `t` where `id` is not 0, else `f`.
pub fn where_cond(id: Value, t: Value, f: Value) -> Value {
    if id.to_int() != 0 { t } else { f }
}
