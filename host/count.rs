//! Numbers of elements, computed from a kernel's integer arguments.

use std::ops::{Add, Div, Mul, Rem, Sub};

/// An integer that stays at its limit instead of wrapping or panicking: arguments come from callers, and what is
/// computed from them is only compared with lengths and limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub i128);

impl Count {
    /// The value, 0 where it is negative.
    pub fn get(self) -> u128 {
        self.0.max(0) as u128
    }

    /// 1 if a condition holds, else 0.
    pub fn of_condition(holds: bool) -> Count {
        Count(holds.into())
    }

    /// The quotient, rounded up. Division by zero gives the largest value.
    #[must_use]
    pub fn div_ceil(self, by: impl Into<Count>) -> Count {
        let by = by.into();
        Count(self.0.saturating_add(by.0.saturating_sub(1))) / by
    }

    /// The number itself: of memory, formulas get the number of elements.
    #[must_use]
    pub fn len(self) -> Count {
        self
    }

    /// The larger of both.
    #[must_use]
    pub fn max(self, other: impl Into<Count>) -> Count {
        Ord::max(self, other.into())
    }

    /// The smaller of both.
    #[must_use]
    pub fn min(self, other: impl Into<Count>) -> Count {
        Ord::min(self, other.into())
    }
}

/// Three dimensions, as formulas name them.
#[derive(Clone, Copy, Debug)]
pub struct Dimensions {
    /// The first.
    pub x: Count,
    /// The second.
    pub y: Count,
    /// The third.
    pub z: Count,
}

impl Dimensions {
    /// Those at this position of a formula's values.
    pub fn at(values: &[Count], at: usize) -> Dimensions {
        Dimensions { x: values[at], y: values[at + 1], z: values[at + 2] }
    }
}

impl PartialEq<i128> for Count {
    fn eq(&self, other: &i128) -> bool {
        self.0 == *other
    }
}

impl PartialOrd<i128> for Count {
    fn partial_cmp(&self, other: &i128) -> Option<std::cmp::Ordering> {
        self.0.partial_cmp(other)
    }
}

impl PartialEq<Count> for i128 {
    fn eq(&self, other: &Count) -> bool {
        *self == other.0
    }
}

impl PartialOrd<Count> for i128 {
    fn partial_cmp(&self, other: &Count) -> Option<std::cmp::Ordering> {
        self.partial_cmp(&other.0)
    }
}

impl From<i128> for Count {
    fn from(value: i128) -> Count {
        Count(value)
    }
}

macro_rules! operator {
    ($trait:ident $method:ident, $f:expr) => {
        impl $trait for Count {
            type Output = Count;
            fn $method(self, other: Count) -> Count {
                let f: fn(i128, i128) -> i128 = $f;
                Count(f(self.0, other.0))
            }
        }

        impl $trait<i128> for Count {
            type Output = Count;
            fn $method(self, other: i128) -> Count {
                $trait::$method(self, Count(other))
            }
        }

        impl $trait<Count> for i128 {
            type Output = Count;
            fn $method(self, other: Count) -> Count {
                $trait::$method(Count(self), other)
            }
        }
    };
}

operator!(Add add, i128::saturating_add);
operator!(Sub sub, i128::saturating_sub);
operator!(Mul mul, i128::saturating_mul);
operator!(Div div, |a, b| a.checked_div(b).unwrap_or(i128::MAX));
operator!(Rem rem, |a, b| a.checked_rem(b).unwrap_or(0));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_mix_with_counts() {
        let n = Count(7);
        assert_eq!(2 * n + 1, Count(15));
        assert_eq!((n - 8).get(), 0);
        assert_eq!(n.div_ceil(4), Count(2));
        assert_eq!(Count::from(32), Count(32));
    }

    #[test]
    fn nothing_wraps_or_panics() {
        let huge = Count(u64::MAX.into());
        assert_eq!(huge * huge * huge, Count(i128::MAX));
        assert_eq!(huge / 0, Count(i128::MAX));
        assert_eq!(huge % 0, Count(0));
        assert_eq!(huge.div_ceil(0), Count(i128::MAX));
    }
}
