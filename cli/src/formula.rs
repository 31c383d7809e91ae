//! The formulas of a kernel's record: Rust expressions over integers, as `#[amdgpu_kernel]` writes them.

use candle_amdgpu::Count;

/// The value of a formula; of a condition 1 or 0. `value` has the numbers behind the names: `numel`, `x.len()`, `grid.x`.
/// `None` if a name has none, or if this is not a formula.
pub fn evaluate(text: &str, value: &dyn Fn(&str) -> Option<Count>) -> Option<Count> {
    let mut parser = Parser { text, value };
    let result = parser.condition()?;
    parser.text.trim().is_empty().then_some(result)
}

struct Parser<'a> {
    /// What is left.
    text: &'a str,
    value: &'a dyn Fn(&str) -> Option<Count>,
}

impl Parser<'_> {
    /// Takes one of these tokens, if it is next.
    fn take(&mut self, tokens: &[&'static str]) -> Option<&'static str> {
        let rest = self.text.trim_start();
        let token = tokens.iter().find(|token| rest.starts_with(**token))?;
        self.text = &rest[token.len()..];
        Some(token)
    }

    /// Comparisons with `||` between them, or a number.
    fn condition(&mut self) -> Option<Count> {
        let mut result = self.comparison()?;
        while self.take(&["||"]).is_some() {
            let right = self.comparison()?;
            result = Count::of_condition(result != Count(0) || right != Count(0));
        }
        Some(result)
    }

    fn comparison(&mut self) -> Option<Count> {
        let left = self.sum()?;
        let Some(operator) = self.take(&["==", "!=", "<=", ">=", "<", ">"]) else { return Some(left) };
        let right = self.sum()?;
        Some(Count::of_condition(match operator {
            "==" => left == right,
            "!=" => left != right,
            "<=" => left <= right,
            ">=" => left >= right,
            "<" => left < right,
            _ => left > right,
        }))
    }

    fn sum(&mut self) -> Option<Count> {
        let mut result = self.product()?;
        while let Some(operator) = self.take(&["+", "-"]) {
            let right = self.product()?;
            result = if operator == "+" { result + right } else { result - right };
        }
        Some(result)
    }

    fn product(&mut self) -> Option<Count> {
        let mut result = self.calls()?;
        while let Some(operator) = self.take(&["*", "/", "%"]) {
            let right = self.calls()?;
            result = match operator {
                "*" => result * right,
                "/" => result / right,
                _ => result % right,
            };
        }
        Some(result)
    }

    /// A number, and methods that are called on it.
    fn calls(&mut self) -> Option<Count> {
        let mut result = self.atom()?;
        while let Some(method) = self.take(&[".div_ceil(", ".min(", ".max("]) {
            let argument = self.sum()?;
            self.take(&[")"])?;
            result = match method {
                ".div_ceil(" => result.div_ceil(argument),
                ".min(" => result.min(argument),
                _ => result.max(argument),
            };
        }
        Some(result)
    }

    fn atom(&mut self) -> Option<Count> {
        if self.take(&["("]).is_some() {
            let result = self.condition()?;
            self.take(&[")"])?;
            return Some(result);
        }
        let rest = self.text.trim_start();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        for suffix in [".len()", ".x", ".y", ".z"] {
            let is_whole = |after: &str| suffix == ".len()" || !after.starts_with(is_word);
            if rest[end..].strip_prefix(suffix).is_some_and(is_whole) {
                end += suffix.len();
                break;
            }
        }
        let word = &rest[..end];
        self.text = &rest[end..];
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return word.parse().ok().map(Count);
        }
        (self.value)(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str) -> Option<Count> {
        let values = [("n", 7), ("k", 0), ("x.len()", 100), ("grid.x", 3), ("block.y", 2)];
        values.iter().find(|(other, _)| *other == name).map(|(_, value)| Count(*value))
    }

    #[test]
    fn formulas_have_the_values_that_rust_gives_them() {
        for (text, expected) in [
            ("n", 7),
            ("n * 2 + 1", 15),
            ("1 + n * 2", 15),
            ("(n + 1) * 2", 16),
            ("10 - 3 - 2", 5),
            ("100 / 7 / 2", 7),
            ("100 % 7", 2),
            ("(n).div_ceil(4)", 2),
            ("x.len() / (k).max(1)", 100),
            ("(n * 3).min(20).max(4)", 20),
            ("grid.x * block.y * n", 42),
            ("n >= 7", 1),
            ("n % 2 == 0 || k == 0", 1),
            ("n < 7 || k > 0", 0),
            ("(5)", 5),
        ] {
            assert_eq!(evaluate(text, &value), Some(Count(expected)), "{text}");
        }
    }

    #[test]
    fn what_is_not_known_has_no_value() {
        for text in [
            "m",
            "n + m",
            "n +",
            "n n",
            "",
            "(n",
            "y.len()",
            "grid.w",
            "n.abs()",
            "99999999999999999999999999999999999999999",
        ] {
            assert_eq!(evaluate(text, &value), None, "{text}");
        }
    }
}
