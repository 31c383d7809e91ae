//! Sort: positions in the order of the elements.

use super::Value;
use std::cmp::Ordering;

/// Which of two elements comes first. NaN is last in either direction; the two zeros are equal.
pub fn compare(a: Value, b: Value, descending: bool) -> Ordering {
    let numbers = if a.dtype().is_float() {
        match (a.is_nan(), b.is_nan()) {
            (false, false) => a.to_f64().partial_cmp(&b.to_f64()).expect("no NaN"),
            (a, b) => return a.cmp(&b),
        }
    } else {
        a.to_int().cmp(&b.to_int())
    };
    if descending { numbers.reverse() } else { numbers }
}

/// Sorts positions of elements of `row`; equal elements are in the order of their positions.
pub fn sort(positions: &mut [u32], row: &[Value], descending: bool) {
    positions.sort_by(|&a, &b| order(a, b, row, descending));
}

/// Puts two positions in order, if there are both.
pub fn exchange(positions: &mut [u32], low: usize, high: usize, row: &[Value], descending: bool) {
    if high < positions.len() && order(positions[low], positions[high], row, descending) == Ordering::Greater
    {
        positions.swap(low, high);
    }
}

fn order(a: u32, b: u32, row: &[Value], descending: bool) -> Ordering {
    compare(row[a as usize], row[b as usize], descending).then(a.cmp(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::DType;

    #[test]
    fn nan_is_last_and_equal_elements_keep_their_order() {
        let row = [f64::NAN, 0.0, 2.0, -0.0, -1.0].map(|x| Value::from_f64(DType::F32, x));
        let of = |descending| {
            let mut positions = [0, 1, 2, 3, 4];
            sort(&mut positions, &row, descending);
            positions
        };
        assert_eq!(of(false), [4, 1, 3, 2, 0]);
        assert_eq!(of(true), [2, 1, 3, 4, 0]);
    }
}
