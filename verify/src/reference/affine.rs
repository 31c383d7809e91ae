//! Affine: y = x·mul + add.

use super::Value;

/// One element: the product is rounded, then the sum.
pub fn affine(x: Value, mul: Value, add: Value) -> Value {
    x * mul + add
}
