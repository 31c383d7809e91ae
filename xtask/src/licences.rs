//! Whether the licences of all dependencies are among those that deny.toml allows. `cargo deny` checks that and more, but
//! it is a large program, so this check does without it.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use spdx::{Expression, ParseMode};

use crate::shell;

/// Checks this workspace; in full, that of `candle/` too.
pub fn run(full: bool) -> Result<()> {
    let path = shell::workspace().join("deny.toml");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let allowed = allowed(&text).with_context(|| format!("cannot use {}", path.display()))?;
    let deny = shell::succeeds(shell::cargo().args(["deny", "--version"]));
    for manifest in ["Cargo.toml", "candle/Cargo.toml"].iter().take(if full { 2 } else { 1 }) {
        let mut cargo = shell::cargo();
        cargo.args(["metadata", "--format-version", "1", "--locked", "--manifest-path", manifest]);
        let output = cargo.output().context("cargo does not start")?;
        if !output.status.success() {
            bail!("`{}` failed: {}", shell::text(&cargo), String::from_utf8_lossy(&output.stderr).trim());
        }
        let metadata: Value = serde_json::from_slice(&output.stdout)?;
        let packages = metadata["packages"].as_array().context("cargo lists no packages")?;
        let wrong: Vec<String> = packages.iter().filter_map(|package| wrong(package, &allowed)).collect();
        if !wrong.is_empty() {
            bail!("{}", wrong.join("\n"));
        }
        println!("{manifest}: {} packages", packages.len());
        if deny {
            let mut cargo = shell::cargo();
            cargo.args(["deny", "--manifest-path", manifest, "--config", "deny.toml"]);
            shell::run(cargo.args(["check", "licenses", "bans", "sources"]))?;
        }
    }
    if !deny {
        println!(
            "cargo deny is not installed, and was not run: `cargo install --locked cargo-deny` gets it."
        );
    }
    Ok(())
}

/// The list `allow` of the licences.
fn allowed(deny: &str) -> Result<BTreeSet<String>> {
    let table: toml::Table = deny.parse()?;
    let list =
        table.get("licenses").and_then(|licences| licences.get("allow")).and_then(toml::Value::as_array);
    let list = list.context("it has no list `licenses.allow`")?;
    list.iter().map(|name| Ok(name.as_str().context("a licence is a string")?.to_owned())).collect()
}

/// What is wrong with a package's licence.
fn wrong(package: &Value, allowed: &BTreeSet<String>) -> Option<String> {
    let [name, version, licence] =
        ["name", "version", "license"].map(|key| package[key].as_str().unwrap_or_default());
    // Older crates write a slash for `OR`.
    match Expression::parse_mode(licence, ParseMode::LAX) {
        Ok(expression) if expression.evaluate(|one| allowed.contains(&one.to_string())) => None,
        Ok(_) => Some(format!("{name} {version}: deny.toml does not allow `{licence}`")),
        Err(error) => Some(format!("{name} {version}: `{licence}` is not a licence: {}", error.reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_licence_is_allowed_by_one_of_several_or_by_all_that_must_hold() {
        let allowed =
            allowed("[licenses]\nallow = [\"MIT\", \"Apache-2.0 WITH LLVM-exception\", \"Unicode-3.0\"]")
                .unwrap();
        let judge = |licence| wrong(&json!({"name": "a", "version": "1.0.0", "license": licence}), &allowed);
        for good in
            ["MIT", "Unlicense/MIT", "(MIT OR Apache-2.0) AND Unicode-3.0", "Apache-2.0 WITH LLVM-exception"]
        {
            assert_eq!(judge(good), None, "{good}");
        }
        for bad in ["GPL-3.0-only", "MIT AND BSD-3-Clause", "Apache-2.0", "Mit-ish", ""] {
            assert!(judge(bad).is_some_and(|text| text.starts_with("a 1.0.0: ")), "{bad}");
        }
    }
}
