//! Ternary: one of two elements.

use super::Value;

/// `t` if `id` is not 0, otherwise `f`.
pub fn where_cond(id: Value, t: Value, f: Value) -> Value {
    if id.to_int() != 0 { t } else { f }
}
