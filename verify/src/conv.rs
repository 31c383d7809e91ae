//! `im2col_T`, `im2col1d_T`, `col2im1d_T`, `conv1d_T`, `conv2d_T`, `conv_transpose1d_T`, `conv_transpose2d_T`, `avg_pool2d_T`,
//! `max_pool2d_T`, `upsample_nearest2d_T` and `upsample_bilinear2d_T`

use super::{Call, Draw, Expected, Family, Grid, Input, Operand, Random, Tolerance};
use crate::reference::conv::{self, Image, Windows};
use crate::reference::{Array, DType, Value};
use candle_amdgpu::{CONV, Kernel, LaunchConfig, Layout, Module};

pub(super) struct Conv;

impl Family for Conv {
    fn module(&self) -> &'static Module {
        &CONV
    }

    fn call(&self, kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
        let operation = operation(kernel)?;
        let case = Case::of(operation, draw);
        let Case { image, weights, windows, .. } = case;
        let memory =
            |data, operand: usize| Some(Input::Memory(Operand { data, shift: draw.shifts[operand] }));
        let layouts = if operation == Operation::Col2im1d { vec![] } else { vec![case.layouts()] };
        Call::new(kernel, case.grid, layouts, |name, dtype| {
            let number = |n: usize| Some(Input::Value(Value::from_int(dtype, n as i128)));
            let float = |x: f64| Some(Input::Value(Value::from_f64(dtype, x)));
            let of_pool = |d: usize| if case.pools { d } else { 1 - d };
            match name {
                "src" => memory(draw.array(dtype, span(image), 0), 0),
                "kernel" => memory(draw.array(dtype, span(weights), 1), 1),
                "dst" => memory(draw.array(dtype, case.result, 2), 2),
                "dst_el" => number(case.result),
                "w_out" => number(windows.out[of_pool(0)]),
                "h_out" => number(windows.out[of_pool(1)]),
                "l_out" | "num_dims" => number(windows.out[1]),
                "w_k" => number(windows.size[of_pool(0)]),
                "h_k" => number(windows.size[of_pool(1)]),
                "l_k" | "k_size" => number(windows.size[1]),
                "w_stride" => number(windows.stride[0]),
                "h_stride" => number(windows.stride[1]),
                "stride" => number(windows.stride[1]),
                "padding" => number(windows.padding[1]),
                "out_padding" => number(0),
                "dilation" => number(windows.dilation[1]),
                "l_in" => number(image.dims[1]),
                "c_out" => number(image.dims[2]),
                "w_scale" => float(case.scale[0]),
                "h_scale" => float(case.scale[1]),
                "align_corners" => Some(Input::Value(Value::from_int(DType::U8, case.flags[0].into()))),
                "has_scale_h" => Some(Input::Value(Value::from_int(DType::U8, case.flags[1].into()))),
                "has_scale_w" => Some(Input::Value(Value::from_int(DType::U8, case.flags[2].into()))),
                "scale_h_factor" => float(1.0 / case.scale[0]),
                "scale_w_factor" => float(1.0 / case.scale[1]),
                _ => None,
            }
        })
    }

    fn expected(&self, call: &Call) -> Vec<Expected> {
        let Some(operation) = operation(call.kernel) else { return Vec::new() };
        let seen = Seen { call, operation };
        vec![Expected { arg: call.position("dst"), data: seen.result(), tolerance: Tolerance::Exact }]
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Im2col,
    Im2col1d,
    Col2im1d,
    Conv1d,
    Conv2d,
    Transpose1d,
    Transpose2d,
    Mean,
    Max,
    Nearest,
    Bilinear,
}

fn operation(kernel: &Kernel) -> Option<Operation> {
    const NAMES: [(&str, Operation); 11] = [
        ("im2col_", Operation::Im2col),
        ("im2col1d_", Operation::Im2col1d),
        ("col2im1d_", Operation::Col2im1d),
        ("conv1d_", Operation::Conv1d),
        ("conv2d_", Operation::Conv2d),
        ("conv_transpose1d_", Operation::Transpose1d),
        ("conv_transpose2d_", Operation::Transpose2d),
        ("avg_pool2d_", Operation::Mean),
        ("max_pool2d_", Operation::Max),
        ("upsample_nearest2d_", Operation::Nearest),
        ("upsample_bilinear2d_", Operation::Bilinear),
    ];
    NAMES.iter().find_map(|&(prefix, operation)| kernel.name.starts_with(prefix).then_some(operation))
}

/// What a draw becomes.
struct Case {
    image: Image,
    weights: Image,
    windows: Windows,
    /// Whether the tensors have one dimension less.
    signal: bool,
    /// Whether Candle calls the first dimension w, and the second h.
    pools: bool,
    has_weights: bool,
    scale: [f64; 2],
    flags: [bool; 3],
    /// Elements of the result.
    result: usize,
    grid: Grid,
}

impl Case {
    fn of(operation: Operation, draw: &Draw) -> Case {
        use Operation::{
            Bilinear, Col2im1d, Conv1d, Conv2d, Im2col, Im2col1d, Max, Mean, Nearest, Transpose1d,
            Transpose2d,
        };
        let mut random = draw.random(5);
        let [height, width, channels, others, size, stride, padding, gaps] = draw.small;
        let signal = matches!(operation, Im2col1d | Col2im1d | Conv1d | Transpose1d);
        let pools = matches!(operation, Mean | Max | Nearest);
        let sums = matches!(operation, Conv1d | Conv2d | Transpose1d | Transpose2d);
        // Draws of a fixed size are told apart by it.
        let width = 1 + width + draw.layout.numel() % 45;
        let height = if signal { 1 } else { 1 + height % 9 };
        let batch = 1 + draw.layout.rank() % 2;
        let groups = if matches!(operation, Conv1d | Conv2d) { 1 + random.below(3) } else { 1 };
        // Sums may be over no channels.
        let of_group = if sums { [1, 2, 3, 0][channels % 4] } else { 1 + channels % 9 };
        let dims = [batch, groups * of_group, height, width];
        let mut pick = |most: usize| 1 + random.below(most);
        let [h_k, w_k] = if signal { [1, 1 + size % 5] } else { [1 + size % 4, pick(4)] };
        let step = 1 + stride % 3;
        let mut windows = Windows {
            size: [h_k, w_k],
            out: [0; 2],
            stride: if pools {
                [step, pick(3)]
            } else if signal {
                [1, step]
            } else {
                [step; 2]
            },
            padding: [0; 2],
            dilation: [1; 2],
        };
        if !pools && operation != Col2im1d && operation != Bilinear {
            let (padding, dilation) = (padding % 3, pick(2));
            windows.padding = if signal { [0, padding] } else { [padding; 2] };
            windows.dilation = if signal { [1, dilation] } else { [dilation; 2] };
        }
        let out_channels = 1 + others % 11;
        let kernel = match operation {
            Transpose1d | Transpose2d => [dims[1], out_channels, h_k, w_k],
            _ => [groups * out_channels, of_group, h_k, w_k],
        };
        windows.out = match operation {
            Nearest | Bilinear => [pick(12), pick(40)],
            Transpose1d | Transpose2d => grown(&dims, &windows),
            Col2im1d => [1, (width - 1) * step + w_k],
            _ => shrunk(&dims, &windows),
        };
        let places = windows.out[0] * windows.out[1];
        let result = match operation {
            Im2col | Im2col1d => batch * places * dims[1] * h_k * w_k,
            Col2im1d => batch * out_channels * places,
            Conv1d | Conv2d => batch * kernel[0] * places,
            Transpose1d | Transpose2d => batch * kernel[1] * places,
            _ => batch * dims[1] * places,
        };
        let image = match operation {
            Col2im1d => contiguous([batch, width, out_channels, w_k]),
            _ => image(dims, gaps, &mut random),
        };
        let scale = [0, 1].map(|d| match operation {
            Nearest => image.dims[2 + d] as f64 / windows.out[d] as f64,
            _ => 0.3 + random.below(30) as f64 / 10.0,
        });
        let flags = [random.below(2) == 0, random.below(2) == 0, random.below(2) == 0];
        let weights = self::image(kernel, gaps / 4, &mut random);
        let grid = match draw.grid {
            // Any amount of workgroup memory, as well as none.
            Grid::Odd { workgroups, lanes } if matches!(operation, Im2col | Im2col1d) => {
                let lds_bytes = 48 * gaps as u32;
                Grid::Explicit(LaunchConfig::explicit([workgroups, 1, 1], [lanes, 1, 1], lds_bytes))
            }
            // Their own grid is for results of any number of channels, and takes the emulator long.
            Grid::Own if matches!(operation, Nearest | Bilinear) && random.below(6) > 0 => {
                Grid::Odd { workgroups: 3, lanes: 256 }
            }
            grid => grid,
        };
        Case { image, weights, windows, signal, pools, has_weights: sums, scale, flags, result, grid }
    }

    /// Of the source and, where there are some, of the weights.
    fn layouts(&self) -> Vec<Layout> {
        let tensors = [Some(self.image), self.has_weights.then_some(self.weights)];
        let of = |words: [usize; 4]| -> Vec<usize> {
            (0..4).filter(|&d| !(self.signal && d == 2)).map(|d| words[d]).collect()
        };
        let layout =
            |Image { dims, strides }| Layout::new(&of(dims), &of(strides), 0).expect("a few elements");
        tensors.into_iter().flatten().map(layout).collect()
    }
}

/// Numbers of windows that an image has room for.
fn shrunk(dims: &[usize; 4], windows: &Windows) -> [usize; 2] {
    [0, 1].map(|d| {
        let taken = windows.dilation[d] * (windows.size[d] - 1) + 1;
        let room = (dims[2 + d] + 2 * windows.padding[d]).checked_sub(taken);
        room.map_or(0, |room| room / windows.stride[d] + 1)
    })
}

/// Sizes of what the windows of a transposed convolution are added to.
fn grown(dims: &[usize; 4], windows: &Windows) -> [usize; 2] {
    [0, 1].map(|d| {
        let size = (dims[2 + d] - 1) * windows.stride[d] + windows.dilation[d] * (windows.size[d] - 1) + 1;
        size.saturating_sub(2 * windows.padding[d])
    })
}

fn contiguous(dims: [usize; 4]) -> Image {
    let [_, c, h, w] = dims;
    Image { dims, strides: [c * h * w, h * w, w, 1] }
}

/// A tensor of these sizes: contiguous, or with its dimensions in any order, gaps and repetitions.
fn image(dims: [usize; 4], gaps: usize, random: &mut Random) -> Image {
    if gaps < 8 {
        return contiguous(dims);
    }
    let mut order = [0, 1, 2, 3];
    for i in (1..4).rev() {
        order.swap(i, random.below(i + 1));
    }
    let (mut strides, mut next) = ([0; 4], 1);
    for d in order {
        if random.below(8) > 0 {
            strides[d] = next;
            next *= dims[d] + random.below(3);
        }
    }
    Image { dims, strides }
}

/// Elements up to the last one.
fn span(image: Image) -> usize {
    if image.dims.contains(&0) { 0 } else { image.at(image.dims.map(|dim| dim - 1)) + 1 }
}

/// A call, as its kernel sees it.
struct Seen<'a> {
    call: &'a Call,
    operation: Operation,
}

impl Seen<'_> {
    fn number(&self, name: &str) -> usize {
        self.call.value(name).to_int() as usize
    }

    fn memory(&self, name: &str) -> &Array {
        self.call.memory(name).expect("never null")
    }

    /// The tensor number `index` of `info`.
    fn image(&self, index: usize, signal: bool) -> Image {
        let layout = &self.call.layouts[0][index];
        let words = |words: &[usize], absent: usize| -> [usize; 4] {
            if signal { [words[0], words[1], absent, words[2]] } else { [0, 1, 2, 3].map(|d| words[d]) }
        };
        Image { dims: words(layout.shape(), 1), strides: words(layout.strides(), 0) }
    }

    fn windows(&self, size: [usize; 2], out: [usize; 2], signal: bool) -> Windows {
        let pair = |n: usize, absent: usize| if signal { [absent, n] } else { [n, n] };
        let [stride, padding, dilation] = ["stride", "padding", "dilation"].map(|name| self.number(name));
        Windows { size, out, stride: pair(stride, 1), padding: pair(padding, 0), dilation: pair(dilation, 1) }
    }

    fn result(&self) -> Array {
        let src = self.memory("src");
        let number = |name| self.number(name);
        match self.operation {
            Operation::Im2col => {
                let (size, out) = ([number("h_k"), number("w_k")], [number("h_out"), number("w_out")]);
                conv::im2col(src, self.image(0, false), self.windows(size, out, false))
            }
            Operation::Im2col1d => {
                let windows = self.windows([1, number("l_k")], [1, number("l_out")], true);
                conv::im2col(src, self.image(0, true), windows)
            }
            Operation::Col2im1d => {
                let (l_in, c_out, k_size, l_out) =
                    (number("l_in"), number("c_out"), number("k_size"), number("l_out"));
                let batch = number("dst_el") / (c_out * l_out).max(1);
                conv::col2im(src, [batch, l_in, c_out, k_size], l_out, number("stride"))
            }
            Operation::Conv1d | Operation::Transpose1d => self.sums(true),
            Operation::Conv2d | Operation::Transpose2d => self.sums(false),
            Operation::Mean | Operation::Max => {
                let image = self.image(0, false);
                let (size, stride) =
                    ([number("w_k"), number("h_k")], [number("w_stride"), number("h_stride")]);
                let mut windows = Windows { size, out: [0; 2], stride, padding: [0; 2], dilation: [1; 2] };
                windows.out = shrunk(&image.dims, &windows);
                let pool = if self.operation == Operation::Max { conv::max_pool } else { conv::mean_pool };
                pool(src, image, windows)
            }
            Operation::Nearest => {
                let scale = [self.call.value("w_scale").to_f64(), self.call.value("h_scale").to_f64()];
                conv::nearest(src, self.image(0, false), [number("w_out"), number("h_out")], scale)
            }
            Operation::Bilinear => {
                let factor = |has, factor| (number(has) != 0).then(|| self.call.value(factor).to_f64());
                let factors =
                    [factor("has_scale_h", "scale_h_factor"), factor("has_scale_w", "scale_w_factor")];
                let out = [number("h_out"), number("w_out")];
                conv::bilinear(src, self.image(0, false), out, number("align_corners") != 0, factors)
            }
        }
    }

    fn sums(&self, signal: bool) -> Array {
        let (image, weights) = (self.image(0, signal), self.image(1, signal));
        let length = if self.operation == Operation::Conv1d { "num_dims" } else { "l_out" };
        let out =
            if signal { [1, self.number(length)] } else { [self.number("h_out"), self.number("w_out")] };
        let windows = self.windows([weights.dims[2], weights.dims[3]], out, signal);
        let transposed = matches!(self.operation, Operation::Transpose1d | Operation::Transpose2d);
        let model = if transposed { conv::transposed } else { conv::convolution };
        model(self.memory("src"), image, self.memory("kernel"), weights, windows)
    }
}
