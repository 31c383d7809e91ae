//! Reports of devices that are wrong, hang or die.

use super::*;
use amdgpu_conformance::operation::operations;
use amdgpu_conformance::{Emulated, Executor, Launch, Options, compare, object, targets};
use std::os::unix::fs::PermissionsExt;

fn settings() -> Settings {
    Settings { seed: 7, cases: 1, inputs: 64, differences: 5, families: vec![], groups: vec![], only: vec![] }
}

fn document(parts: Vec<Part>) -> Document {
    let devices = json!({
        "backend": "HIP of /opt/rocm/lib/libamdhip64.so", "runtime_version": 60_400_000, "driver_version": 60_400_000,
        "devices": [{
            "ordinal": 0, "backend": "hip", "name": "A card <1>", "target": "gfx1100", "compute_units": 96, "clock_mhz": 2500,
        }],
    });
    let mut document = Document::new(&devices, 0, settings()).expect("devices");
    document.parts = parts;
    document.finish(1.5, true);
    document
}

fn part(kind: Kind, of: &str, code: i32, result: Value) -> Part {
    let ended = Ended { how: How::Exited, code: Some(code), error: None };
    Part { kind, of: of.to_owned(), arguments: vec![], seconds: 0.5, ended, result }
}

/// An emulated device with one wrong bit.
struct OneBit(Emulated);

impl Executor for OneBit {
    fn run(&mut self, kernel: &str, launch: Launch<'_>) -> Result<Vec<u32>, String> {
        let mut words = self.0.run(kernel, launch)?;
        words[3] ^= 1;
        Ok(words)
    }
}

#[test]
fn a_wrong_bit_is_in_the_page_and_in_the_json() {
    let Some(gfx) = targets().next() else { return };
    let bytes = object(gfx).expect("a target of this build");
    let device = || Emulated::new(gfx, &bytes).expect("a device");
    let add =
        operations(gfx).into_iter().find(|operation| operation.name == "v_add_f32").expect("an addition");
    let options = Options { cases: 64, seed: 7, differences: 5 };
    let found = compare(&add, &mut OneBit(device()), &mut device(), options);
    let difference = found.runs[0].differences[0].clone();
    let result = json!({ "operations": [found], "not_run": 0 });
    let document = document(vec![part(Kind::Conformance, "float", 1, result)]);
    assert!(!document.agrees);
    assert_eq!(
        document.conclusion(),
        format!(
            "1 differs from the emulator, of 1 operation on {} inputs",
            document.parts[0].compared()[0].runs.len() * 64
        )
    );
    let page = page::page(&document);
    for text in [&difference.first, &difference.second, &difference.inputs[1][0]] {
        assert!(page.contains(text.as_str()), "{text}");
    }
    assert!(page.contains("v_add_f32<span class='verdict different'>"));
    assert!(page.contains("A card &lt;1&gt;") && !page.contains("/opt/rocm"));
    let json = serde_json::to_value(&document).expect("JSON");
    assert_eq!(json["schema"], document::SCHEMA);
    let in_json = &json["parts"][0]["result"]["operations"][0]["runs"][0]["differences"][0];
    assert_eq!(in_json["first"], difference.first.as_str());
    assert_eq!(in_json["second"], difference.second.as_str());
    // What was written can be read.
    let read: Document = serde_json::from_value(json).expect("a report");
    assert_eq!(read.parts[0].compared()[0].runs[0].differing, 1);
}

#[test]
fn a_report_without_results_says_so() {
    let ended = Ended { how: How::Signal, code: Some(11), error: Some("hipErrorIllegalAddress".to_owned()) };
    let lost = Part { ended, ..part(Kind::Verify, "affine", 0, Value::Null) };
    let skipped = part(Kind::Conformance, "float", 0, json!({ "skipped": conformance::NOT_AMD }));
    let document = document(vec![skipped, lost]);
    assert!(!document.agrees);
    assert_eq!(document.conclusion(), "1 part did not end well");
    let page = page::page(&document);
    for text in ["signal 11", "hipErrorIllegalAddress", conformance::NOT_AMD, "no result"] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn kernels_and_measurements_are_in_the_page() {
    let verify = json!({ "results": [
        { "family": "fill", "kernel": "fill_f32", "gfx": "gfx1100", "launches": 7, "elements": 1234, "largest_ulp": 0, "failure": null },
        { "family": "fill", "kernel": "fill_f16", "gfx": "gfx1100", "launches": 2, "elements": 5, "largest_ulp": 9, "failure": "is <wrong>" },
    ] });
    let bench = json!({ "kernels": [
        { "family": "fill", "kernel": "fill_f32", "elements": 10, "buffer_bytes": 40,
          "times": { "seconds": 2e-6, "launches": 5, "bandwidth": 2e9, "copy_bandwidth": 4e9 } },
        { "family": "fill", "kernel": "fill_f16", "elements": 10, "buffer_bytes": 20, "failure": "it <hung>" },
    ] });
    let document = document(vec![part(Kind::Verify, "fill", 1, verify), part(Kind::Bench, "fill", 1, bench)]);
    assert_eq!(document.conclusion(), "1 differs from the host model, of 2 kernels");
    assert_eq!(document.parts[0].outcome(), "1 of 2 kernels WRONG");
    let page = page::page(&document);
    for text in ["is &lt;wrong&gt;", "it &lt;hung&gt;", "1,239", "2.00", "50 %", "4 GB/s"] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn an_instruction_that_ends_the_process_fails_and_the_next_ones_follow() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("program");
    let line = |name: &str| {
        json!({
            "name": name, "group": "lds", "accuracy": "exact", "inputs": [], "outputs": [], "verdict": "equal", "runs": [],
        })
        .to_string()
    };
    let text = format!(
        "#!/bin/sh\ncase \"$*\" in\n*--list) printf 'a\\nb\\nc\\n';;\n*'--lines-from 0') echo '{}'; printf '{{\"name\"'; kill -9 $$;;\n\
         *'--lines-from 2') echo '{}';;\n*) exit 2;;\nesac\n",
        line("a"),
        line("c")
    );
    std::fs::write(&script, text).expect("a script");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("a script");
    let program = Program::at(script, Duration::from_secs(20));
    let step =
        Step { kind: Kind::Conformance, of: "lds".to_owned(), arguments: vec!["conformance".to_owned()] };
    let part = super::run(&program, &step).expect("a part");
    let compared = part.compared();
    let verdicts: Vec<_> = compared.iter().map(|c| (c.name.as_str(), c.verdict)).collect();
    use amdgpu_conformance::Verdict::{Equal, Failed};
    assert_eq!(verdicts, [("a", Equal), ("b", Failed), ("c", Equal)]);
    assert_eq!(compared[1].runs[0].error.as_deref(), Some("signal 9"));
    assert_eq!((part.ended.how, part.ended.code), (How::Signal, Some(9)));
    assert_eq!(part.result["not_run"], 0);
    assert_eq!(part.outcome(), "2 of 3 operations equal, 1 FAILED; signal 9");
}

#[test]
fn what_is_measured_exists_and_is_of_every_family() {
    assert_eq!(measured().count(), MEASURED.len());
    for module in kernels::MODULES {
        assert!(measured().any(|kernel| kernel.family == module.name()), "{}", module.name());
    }
}
