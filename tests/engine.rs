//! The property engine notices the mistakes that it looks for.

mod common;

use candle_amdgpu::kernel::{Arg, ArgType, LaunchHints};
use candle_amdgpu::{Count, FILL, Kernel, Layout, Module, kernel::Formula};
use candle_amdgpu_verify::reference::{Array, DType, Value};
use candle_amdgpu_verify::{
    Call, Draw, Expected, Family, Input, Operand, Options, Outcome, Tolerance, verify,
};

/// `fill_f32` with a model that is right for values below `wrong_from`, which are the draw's first small number.
struct Model {
    module: &'static Module,
    wrong_from: usize,
    /// How many more elements the kernel is told of than there are.
    surplus: usize,
}

impl Family for Model {
    fn module(&self) -> &'static Module {
        self.module
    }

    fn call(&self, kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
        let numel = draw.layout.numel();
        Call::new(kernel, draw.grid, vec![], |name, dtype| {
            Some(match name {
                "buf" => Input::Memory(Operand { data: Array::zeros(dtype, numel), shift: 0 }),
                "value" => Input::Value(Value::from_f64(dtype, draw.small[0] as f64)),
                "numel" => Input::Value(Value::from_int(dtype, (numel + self.surplus) as i128)),
                _ => return None,
            })
        })
    }

    fn expected(&self, call: &Call) -> Vec<Expected> {
        let value = call.value("value");
        let wrong = value.to_f64() >= self.wrong_from as f64;
        let expected = if wrong { Value::from_f64(DType::F32, -1.0) } else { value };
        let len = call.memory("buf").expect("never null").len();
        let data = Array::from_fn(DType::F32, len, |_| expected);
        vec![Expected { arg: call.position("buf"), data, tolerance: Tolerance::Bits }]
    }
}

fn run(model: &Model, name: &str) -> Outcome {
    let kernel = model.module().kernel(name).expect("a kernel");
    let options = Options { fixed: true, cases: 200, seed: 3 };
    verify(model, kernel, &common::device("gfx1100"), options).expect("the device works")
}

#[test]
fn a_right_model_agrees() {
    let outcome = run(&Model { module: &FILL, wrong_from: usize::MAX, surplus: 0 }, "fill_f32");
    assert_eq!(outcome.failure, None);
    assert!(outcome.cases > 200 && outcome.elements > 100_000);
}

#[test]
fn a_wrong_value_is_shrunk_to_the_smallest() {
    let outcome = run(&Model { module: &FILL, wrong_from: 5, surplus: 0 }, "fill_f32");
    let failure = outcome.failure.expect("the model is wrong");
    assert!(
        failure.contains("fill_f32(buf: 1 × f32 at 256·k + 0, value: 5e0 (0x40a00000), numel: 1)"),
        "{failure}"
    );
    assert!(failure.contains("buf[0] = 5e0 (0x40a00000), it must be -1e0"), "{failure}");
    assert!(failure.contains("seed 3"), "{failure}");
}

/// `fill_f32` whose table lacks the length of its buffer, so that nothing is checked before the launch.
static UNCHECKED: [Kernel; 1] = [Kernel {
    family: "fill",
    name: "fill_f32",
    doc: "",
    file: "",
    line: 1,
    args: &[pointer("buf"), scalar("value", "f32", 4), scalar("numel", "usize", 8)],
    derived: &[],
    geometry: LaunchHints {
        workgroup: [256, 1, 1],
        max_workgroup_size: 1024,
        items_per_lane: 4,
        lds_bytes: 0,
        items: Some(Formula { text: "numel", eval: |v: &[Count]| v[2] }),
        rows: None,
        columns: None,
        grid: None,
        lds: None,
    },
}];

const fn pointer(name: &'static str) -> Arg {
    let ty = ArgType::Pointer { mutable: true, pointee: "f32" };
    Arg::new(name, ty, 8)
}

const fn scalar(name: &'static str, ty: &'static str, size: u32) -> Arg {
    Arg::new(name, ArgType::Value(ty), size)
}

#[test]
fn a_write_out_of_range_is_seen() {
    let module: &'static Module = Box::leak(Box::new(Module::new("unchecked", FILL.objects(), &UNCHECKED)));
    let outcome = run(&Model { module, wrong_from: usize::MAX, surplus: 1 }, "fill_f32");
    let failure = outcome.failure.expect("an element too many is written");
    assert!(failure.contains("`buf` is written out of range, 1 byte after its last element"), "{failure}");
}

#[test]
fn a_kernel_without_model_is_a_failure() {
    struct Nothing;
    impl Family for Nothing {
        fn module(&self) -> &'static Module {
            &FILL
        }
        fn call(&self, _: &'static Kernel, _: &Draw) -> Option<Call> {
            None
        }
        fn expected(&self, _: &Call) -> Vec<Expected> {
            Vec::new()
        }
    }
    let kernel = FILL.kernel("fill_u8").expect("a kernel");
    let options = Options { fixed: true, cases: 1, seed: 0 };
    let outcome = verify(&Nothing, kernel, &common::device("gfx1100"), options).expect("the device works");
    assert!(outcome.failure.is_some_and(|text| text.contains("no model of fill_u8")));
}

#[test]
fn layouts_are_of_every_kind() {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let strategy = Draw::strategy();
    let layouts: Vec<Layout> =
        (0..500).map(|_| strategy.new_tree(&mut runner).expect("a draw").current().layout).collect();
    let any = |what: &str, is: &dyn Fn(&Layout) -> bool| {
        assert!(layouts.iter().any(is), "none of 500 layouts is {what}");
    };
    for rank in 0..=6 {
        any(&format!("of rank {rank}"), &|l| l.rank() == rank && l.numel() > 0);
    }
    any("empty", &|l| l.numel() == 0);
    any("offset", &|l| l.offset() > 0);
    any("broadcast", &|l| l.shape().iter().zip(l.strides()).any(|(&d, &s)| d > 1 && s == 0));
    any("permuted", &|l| l.numel() > 1 && l.strides().windows(2).any(|s| 0 < s[0] && s[0] < s[1]));
    any("larger than a workgroup's items", &|l| l.numel() > 4096);
}
