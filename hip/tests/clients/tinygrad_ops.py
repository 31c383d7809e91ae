"""tinygrad 0.14.0: its HIP device with kernels from its LLVM renderer, against its CPU device.

The renderer's compiler writes a relocatable object, which HIP does not load: the linker makes a shared one of it. libLLVM, lld
and clang, which compiles for the CPU, are the newest that are installed.
"""

import glob
import os
import re
import subprocess
import tempfile


def newest(*patterns):
    paths = [path for pattern in patterns for path in glob.glob(pattern)]
    version = lambda path: [int(number) for number in re.findall(r"\d+", os.path.basename(path))]
    return max(paths, key=version, default=None)


LLVM = newest("/usr/lib/*/libLLVM-*.so", "/usr/lib/*/libLLVM.so.*", "/usr/lib64/libLLVM*.so*")
LLD = newest("/usr/bin/ld.lld-*", "/usr/bin/ld.lld")
CLANG = newest("/usr/bin/clang-[0-9]*", "/usr/bin/clang")
hip = next(os.path.join(f, "libamdhip64.so") for f in os.environ["LD_LIBRARY_PATH"].split(":") if f)
os.environ.update(LLVM_PATH=LLVM or "", HIP_PATH=hip, CC=CLANG or "clang", DEV="CPU", PARALLEL="0", CACHELEVEL="0")

from common import Tests
from tinygrad import Tensor, dtypes
from tinygrad.renderer.llvmir import AMDLLVMRenderer
from tinygrad.runtime import ops_hip


class Linked(AMDLLVMRenderer):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        compile = self.compiler.compile

        def linked(source):
            with tempfile.TemporaryDirectory() as folder:
                paths = [os.path.join(folder, name) for name in ("kernel.o", "kernel.so")]
                with open(paths[0], "wb") as file:
                    file.write(compile(source))
                subprocess.run([LLD, "-shared", paths[0], "-o", paths[1]], check=True)
                with open(paths[1], "rb") as file:
                    return file.read()

        self.compiler.compile = self.compiler.compile_cached = linked


ops_hip.HIPRenderer = Linked
tests = Tests()
Tensor.manual_seed(1)


def flat(value):
    return [x for part in value for x in flat(part)] if isinstance(value, list) else [value]


def check(name, function, *inputs, tolerance=1e-5):
    """The function's result on both devices. Inputs are tensors of the CPU."""
    results = []
    for device in ("CPU", "HIP"):
        result = function(*(x.to(device).contiguous().realize() for x in inputs))
        if result.dtype in (dtypes.half, dtypes.bfloat16):
            result = result.float()
        results.append((result.shape, flat(result.tolist())))
    (shape, expected), (other, found) = results
    near = lambda a, b: a == b or a != a and b != b or abs(a - b) <= tolerance * max(1.0, abs(a))
    wrong = [i for i, (a, b) in enumerate(zip(expected, found)) if not near(a, b)]
    what = f"{len(wrong)} of {len(expected)}, the first {[(expected[i], found[i]) for i in wrong[:1]]}"
    tests.check(name, shape == other and not wrong, what)


def random(*shape, low=-3.0, high=3.0):
    return Tensor.uniform(*shape, low=low, high=high, device="CPU").realize()


x, y, z = random(5, 33), random(5, 33), random(1, 33)
positive = random(4, 29, low=0.1, high=9.0)
for name in ["neg", "abs", "relu", "sigmoid", "tanh", "exp", "sin", "cos", "gelu", "silu", "elu", "softplus", "mish",
             "floor", "ceil", "trunc", "round", "sign", "square", "erf", "hardswish"]:
    check(name, lambda t, name=name: getattr(t, name)(), x)
for name in ["sqrt", "rsqrt", "log", "log2", "exp2", "reciprocal"]:
    check(name, lambda t, name=name: getattr(t, name)(), positive)
check("add", lambda a, b: a + b, x, z)
check("multiply and subtract", lambda a, b: a * b - a, x, z)
check("divide", lambda a, b: a / (b.abs() + 0.5), x, y)
check("power", lambda a: a.pow(1.5), positive)
check("compare and where", lambda a, b: (a < b).where(a, b * 2), x, y)
check("maximum", lambda a, b: a.maximum(b), x, z)
for name in ["sum", "mean", "max", "min", "std", "logsumexp", "softmax", "log_softmax", "cumsum", "argmax", "argmin"]:
    for axis in (0, 1):
        check(f"{name} along {axis}", lambda t, name=name, axis=axis: getattr(t, name)(axis), x)
check("product", lambda t: t.prod(1), positive[:, :5])
check("sort", lambda t: t.sort(1)[0], x)
check("top 4", lambda t: t.topk(4)[1], x)
check("layer norm", lambda t: t.layernorm(), x)
check("transpose", lambda t: t.transpose(0, 1).contiguous(), x)
check("pad and shrink", lambda t: t.pad(((1, 2), (3, 0))).shrink(((0, 6), (2, 30))).contiguous(), x)
check("flip and stride", lambda t: t.flip(1)[:, ::3].contiguous(), x)
check("concatenation", lambda a, b: a.cat(b, dim=0), x, z)
ids = Tensor([[3, 0], [32, 7]], device="CPU").realize()
check("rows by number", lambda t, i: t.transpose(0, 1).contiguous()[i], x, ids)
check("gather", lambda t, i: t[:2].gather(1, i), x, ids)
check("one hot", lambda i: i.one_hot(40), ids)
check("triangle", lambda t: t.tril(), x)
for dtype in (dtypes.int32, dtypes.int8, dtypes.uint8, dtypes.int64, dtypes.double, dtypes.bool):
    check(f"cast to {dtype.name}", lambda t, dtype=dtype: t.cast(dtype), positive)
whole = (random(4, 31) * 1000).cast(dtypes.int32).realize()
odd = (random(4, 31, low=1, high=9).cast(dtypes.int32) * 2 + 1).realize()
check("whole division and remainder", lambda a, b: (a // b) * 3 + a % b, whole, odd)
check("bits", lambda a, b: (a ^ b) | ((a & 255) << 3), whole, odd)
a, b = random(48, 40), random(40, 56)
check("product of f32", lambda a, b: a @ b, a, b, tolerance=1e-4)
check("product by a vector", lambda a, b: a @ b[:, 0], a, b, tolerance=1e-4)
check("batched product", lambda t: t.reshape(4, 12, 40) @ t.reshape(4, 40, 12), a, tolerance=1e-4)
# The CPU device has no f16: the same numbers in f32 there.
for name, dtype in (("f16", dtypes.half), ("bf16", dtypes.bfloat16)):
    for size in (64, 24):
        whole = [random(size, size).round().realize() for _ in range(2)]
        narrow = lambda t, dtype=dtype: t.cast(dtype) if t.device.startswith("HIP") else t
        check(f"product of {name}, {size}", lambda a, b: narrow(a).matmul(narrow(b), dtype=dtypes.float), *whole)
image, filters = random(2, 3, 10, 11), random(4, 3, 3, 3)
check("convolution", lambda i, f: i.conv2d(f, padding=1, stride=2), image, filters, tolerance=1e-4)
check("grouped convolution", lambda i, f: i.conv2d(f[:3, :1], groups=3, dilation=2), image, filters, tolerance=1e-4)
check("transposed convolution", lambda i, f: i.conv_transpose2d(f.transpose(0, 1)), image, filters, tolerance=1e-4)
check("largest of windows", lambda i: i.max_pool2d((2, 3)), image)
check("mean of windows", lambda i: i.avg_pool2d((3, 3), stride=2), image)
check("interpolation", lambda i: i.interpolate((15, 7)), image, tolerance=1e-4)
q, k, v = (random(2, 2, 9, 16) for _ in range(3))
check("attention", lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True), q, k, v, tolerance=1e-4)


def step(image, filters, weights):
    """Gradients of a small network's loss."""
    hidden = image.conv2d(filters).relu().max_pool2d().flatten(1)
    labels = Tensor([1, 0], device=image.device)
    loss = (hidden @ weights).sparse_categorical_crossentropy(labels)
    of_filters, of_weights = loss.gradient(filters, weights)
    return of_filters.flatten().cat(of_weights.flatten())


check("gradients", step, image, filters, random(64, 3), tolerance=1e-4)
tests.end()
