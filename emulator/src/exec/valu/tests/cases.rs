//! Runs a row of a table of one-lane cases.

use super::*;

/// Target, MODE, LLVM's text, bytes, sources, result.
pub(super) struct Case(pub Gfx, pub u32, pub &'static str, pub &'static str, pub &'static [u64], pub u64);

pub(super) fn check(cases: &[Case]) {
    let mut failures = String::new();
    for &Case(gfx, mode, text, hex, inputs, expected) in cases {
        let mut lab = Lab::new(gfx);
        let wide = text.contains("v[");
        let accumulates =
            ["v_fmac", "v_mac_", "v_dot2c", "v_dot2acc"].iter().any(|stem| text.starts_with(stem));
        let before = if accumulates { 0x3f80_0000 } else { 0xaaaa_aaaa };
        lab.mode(mode).exec(0x5555_5555_5555_5555).set(0, |_| before).set(1, |_| before);
        for (i, &input) in inputs.iter().enumerate() {
            if wide {
                lab.set64(2 + 2 * i as u16, input);
            } else {
                lab.set(1 + i as u16, |_| input as u32);
            }
        }
        let two = text.split_once(' ').is_some_and(|(_, operands)| operands.starts_with("v[0:1]"));
        lab.run(text, hex);
        let got = if two { lab.get64(0, 0) } else { lab.get(0, 0).into() };
        if got != expected {
            failures += &format!("{gfx} {text} MODE {mode:#x} {inputs:#x?}: {got:#x}, not {expected:#x}\n");
        }
        let last = lab.wave.size() as usize - 2;
        assert_eq!(lab.get(0, last), lab.get(0, 0), "{gfx} {text}: lanes differ");
        assert_eq!(lab.get(0, 1), before, "{gfx} {text}: an inactive lane was written");
        lab.exec(0).set(0, |_| before).run(text, hex);
        assert_eq!(lab.get(0, 0), before, "{gfx} {text}: written without EXEC");
    }
    assert!(failures.is_empty(), "\n{failures}");
}
