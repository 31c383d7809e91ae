//! Just enough JSON for a signature's text.

use std::fmt::Write;

/// `"text"`, escaped.
pub(crate) fn string(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c < ' ' => write!(out, "\\u{:04x}", u32::from(c)).expect("a String takes all"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// `[a,b]`
pub(crate) fn array(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

/// `{"key":value}`, without the keys that have no value.
pub(crate) fn object<'a>(fields: impl IntoIterator<Item = (&'a str, Option<String>)>) -> String {
    let fields = fields.into_iter().filter_map(|(key, value)| Some(format!("{}:{}", string(key), value?)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(string("a\"b\\c\nd\u{1}é"), "\"a\\\"b\\\\c\\nd\\u0001é\"");
        assert_eq!(object([("a", Some("1".into())), ("b", None)]), "{\"a\":1}");
    }
}
