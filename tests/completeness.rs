//! Candle's names: each that a family of this build should have, with Candle's parameters.

use candle_amdgpu::kernel::{ArgType, Kernel};
use candle_amdgpu::{ALL_IDS, Id};

struct Name {
    family: &'static str,
    name: &'static str,
    types: Vec<&'static str>,
}

fn candle_names() -> Vec<Name> {
    let lines = include_str!("data/candle_names.tsv").lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut fields = line.split('\t');
            let mut field = || fields.next().expect("three fields in each line");
            Name { family: field(), name: field(), types: field().split(',').collect() }
        })
        .collect()
}

fn id(family: &str) -> Id {
    ALL_IDS.into_iter().find(|id| id.name() == family).expect("one of the eleven families")
}

/// Whether a parameter is what Candle's host code passes.
fn same(ours: &ArgType, theirs: &str) -> bool {
    match (ours, theirs.strip_suffix(" void")) {
        (ArgType::Pointer { mutable, .. }, Some(pointer)) => *mutable == (pointer == "*mut"),
        _ => ours.to_string() == theirs,
    }
}

fn problem(kernel: Option<&Kernel>, types: &[&str]) -> Option<String> {
    let Some(kernel) = kernel else { return Some("is missing".to_owned()) };
    let same = kernel.args.len() == types.len() && kernel.args.iter().zip(types).all(|(a, t)| same(&a.ty, t));
    let ours = || kernel.args.iter().map(|arg| arg.ty.to_string()).collect::<Vec<_>>().join(", ");
    (!same).then(|| format!("takes ({}), Candle passes ({})", ours(), types.join(", ")))
}

#[test]
fn the_families_of_this_build_have_all_of_candles_names() {
    let names = candle_names();
    assert_eq!(names.len(), 755);
    let built: Vec<_> = names.iter().filter(|n| !id(n.family).module().kernels().is_empty()).collect();
    assert!(built.iter().filter(|n| ["affine", "fill"].contains(&n.family)).count() == 34);
    let problems: Vec<String> = built
        .iter()
        .filter_map(|n| Some((n, problem(id(n.family).module().kernel(n.name), &n.types)?)))
        .map(|(n, problem)| format!("{}: {} {problem}", n.family, n.name))
        .collect();
    assert!(problems.is_empty(), "{} of {}:\n{}", problems.len(), built.len(), problems.join("\n"));
}

#[test]
fn a_missing_name_and_a_wrong_type_are_noticed() {
    let affine = id("affine").module();
    assert!(problem(affine.kernel("affine_f31"), &[]).is_some());
    let kernel = affine.kernel("affine_f32");
    let right = ["usize", "usize", "*const usize", "*const f32", "*mut f32", "f32", "f32"];
    assert_eq!(problem(kernel, &right), None);
    let wrong = ["usize", "usize", "*const usize", "*const f32", "*mut f32", "f32", "f64"];
    assert!(problem(kernel, &wrong).is_some_and(|text| text.contains("Candle passes")));
    assert!(problem(kernel, &right[..6]).is_some());
}
