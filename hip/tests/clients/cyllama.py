"""cyllama-rocm: llama.cpp's HIP backend, operation by operation and as two layers of a model, beside its CPU backend."""

import ctypes
import math
import os
import random
import sys
from pathlib import Path

from common import *

tests = Tests()
folder = Path(sys.argv[1]) / "cyllama_rocm.libs"


def load(start):
    (path,) = folder.glob(f"{start}-*.so*")
    return ctypes.CDLL(str(path), mode=os.RTLD_NOW | ctypes.RTLD_GLOBAL)


base = load("libggml-base")
cpu = load("libggml-cpu")
gpu = load("libggml-hip")
tests.check("load", True)
if len(sys.argv) > 2 and sys.argv[2] == "load":
    tests.end()

Pointer = ctypes.c_void_p
F32, F16, Q4_0, Q8_0, Q4_K, Q6_K = 0, 1, 2, 8, 12, 14
BLOCK = {F32: (1, 4), F16: (1, 2), Q4_0: (32, 18), Q8_0: (32, 34), Q4_K: (256, 144), Q6_K: (256, 210)}


class InitParams(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("buffer", Pointer), ("no_alloc", ctypes.c_bool)]


def function(lib, name, result, *arguments):
    found = getattr(lib, name)
    found.restype, found.argtypes = result, arguments
    return found


I64, F = ctypes.c_int64, ctypes.c_float
init = function(base, "ggml_init", Pointer, InitParams)
new_2d = function(base, "ggml_new_tensor_2d", Pointer, Pointer, ctypes.c_int, I64, I64)
new_graph = function(base, "ggml_new_graph", Pointer, Pointer)
expand = function(base, "ggml_build_forward_expand", None, Pointer, Pointer)
alloc = function(base, "ggml_backend_alloc_ctx_tensors", Pointer, Pointer, Pointer)
compute = function(base, "ggml_backend_graph_compute", ctypes.c_int, Pointer, Pointer)
tensor_set = function(base, "ggml_backend_tensor_set", None, Pointer, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_size_t)
tensor_get = function(base, "ggml_backend_tensor_get", None, Pointer, Pointer, ctypes.c_size_t, ctypes.c_size_t)
nbytes = function(base, "ggml_nbytes", ctypes.c_size_t, Pointer)
buffer_free = function(base, "ggml_backend_buffer_free", None, Pointer)
ggml_free = function(base, "ggml_free", None, Pointer)
quantize_chunk = function(
    base, "ggml_quantize_chunk", ctypes.c_size_t, ctypes.c_int, Pointer, Pointer, I64, I64, I64, Pointer
)
op2 = {name: function(base, f"ggml_{name}", Pointer, Pointer, Pointer, Pointer) for name in ("add", "mul", "mul_mat", "get_rows")}
op1 = {name: function(base, f"ggml_{name}", Pointer, Pointer, Pointer) for name in ("silu", "gelu", "relu", "sqr", "cont", "transpose")}
rms_norm = function(base, "ggml_rms_norm", Pointer, Pointer, Pointer, F)
norm = function(base, "ggml_norm", Pointer, Pointer, Pointer, F)
scale = function(base, "ggml_scale", Pointer, Pointer, Pointer, F)
soft_max = function(base, "ggml_soft_max_ext", Pointer, Pointer, Pointer, Pointer, F, F)
reshape_3d = function(base, "ggml_reshape_3d", Pointer, Pointer, Pointer, I64, I64, I64)
reshape_2d = function(base, "ggml_reshape_2d", Pointer, Pointer, Pointer, I64, I64)
permute = function(base, "ggml_permute", Pointer, Pointer, Pointer, *[ctypes.c_int] * 4)
cont_2d = function(base, "ggml_cont_2d", Pointer, Pointer, Pointer, I64, I64)
rope = function(
    base, "ggml_rope_ext", Pointer, Pointer, Pointer, Pointer, Pointer, *[ctypes.c_int] * 3, *[F] * 6
)
cpu_backend = function(cpu, "ggml_backend_cpu_init", Pointer)()
gpu_backend = function(gpu, "ggml_backend_cuda_init", Pointer, ctypes.c_int)(0)
tests.check("ggml_backend_cuda_init", bool(gpu_backend))
if not gpu_backend:
    tests.end()


def bytes_of(kind, columns, rows):
    per, size = BLOCK[kind]
    return columns // per * size * rows


def weights(kind, columns, rows, spread=1.0):
    """Random numbers as a tensor of a kind has them."""
    values = [random.gauss(0, spread) for _ in range(columns * rows)]
    if kind == F32:
        return floats(values)
    if kind == F16:
        return halves(values)
    source = floats(values)
    into = ctypes.create_string_buffer(bytes_of(kind, columns, rows))
    quantize_chunk(kind, ctypes.cast(ctypes.c_char_p(source), Pointer), into, 0, rows, columns, None)
    return into.raw


class Build:
    """A graph under construction, on one of the backends."""

    def __init__(self, backend):
        self.backend, self.inputs = backend, []
        self.context = init(InitParams(16 << 20, None, True))

    def input(self, kind, columns, rows, data):
        tensor = new_2d(self.context, kind, columns, rows)
        self.inputs.append((tensor, data))
        return tensor

    def run(self, result, times=1):
        graph = new_graph(self.context)
        expand(graph, result)
        buffer = alloc(self.context, self.backend)
        outputs = []
        for _ in range(times):
            for tensor, data in self.inputs:
                tensor_set(tensor, data, 0, len(data))
            if compute(self.backend, graph) != 0:
                raise RuntimeError("ggml_backend_graph_compute failed")
            data = ctypes.create_string_buffer(nbytes(result))
            tensor_get(result, data, 0, len(data))
            outputs.append(from_floats(data.raw))
        buffer_free(buffer)
        ggml_free(self.context)
        return outputs


def compare(name, make, tolerance, times=1):
    """Runs what `make` builds on both backends; the error is relative to the size of all of it."""
    (expected,) = Build(cpu_backend).go(make, 1)
    for number, actual in enumerate(Build(gpu_backend).go(make, times)):
        difference = sum((a - b) ** 2 for a, b in zip(actual, expected))
        error = difference / max(sum(b * b for b in expected), 1e-30)
        tests.check(f"{name}, run {number}", error <= tolerance, f"an error of {error:.1e}")


Build.go = lambda self, make, times: self.run(make(self), times)
random.seed(3)
for kind, name in ((F32, "f32"), (F16, "f16"), (Q4_0, "q4_0"), (Q8_0, "q8_0"), (Q4_K, "q4_K"), (Q6_K, "q6_K")):
    # The largest first: mul_mat_q reads past what it has allocated, and then that is a part of something larger.
    for rows in (40, 5, 1):
        a, b = weights(kind, 256, 48), weights(F32, 256, rows)
        compare(
            f"mul_mat of {name} by {rows}",
            lambda g: op2["mul_mat"](g.context, g.input(kind, 256, 48, a), g.input(F32, 256, rows, b)),
            5e-4,
        )
x, y = weights(F32, 96, 7), weights(F32, 96, 7)
for name in ("add", "mul"):
    compare(name, lambda g: op2[name](g.context, g.input(F32, 96, 7, x), g.input(F32, 96, 7, y)), 1e-10)
for name in ("silu", "gelu", "relu", "sqr"):
    compare(name, lambda g: op1[name](g.context, g.input(F32, 96, 7, x)), 1e-6)
compare("rms_norm", lambda g: rms_norm(g.context, g.input(F32, 96, 7, x), 1e-5), 1e-8)
compare("norm", lambda g: norm(g.context, g.input(F32, 96, 7, x), 1e-5), 1e-8)
compare("scale", lambda g: scale(g.context, g.input(F32, 96, 7, x), 0.3), 1e-10)
compare("soft_max", lambda g: soft_max(g.context, g.input(F32, 96, 7, x), None, 0.5, 0.0), 1e-7)
ids = struct.pack("<3i", 2, 0, 6)
compare(
    "get_rows",
    lambda g: op2["get_rows"](g.context, g.input(F32, 96, 7, x), g.input(26, 3, 1, ids)),
    1e-12,
)

# Two layers: embedding, attention with rotated heads, gated MLP, logits.
WIDTH, HEADS, TOKENS, WORDS = 256, 4, 6, 64
HEAD = WIDTH // HEADS
parameters = {("embedding", F16): weights(F16, WIDTH, WORDS), ("logits", Q8_0): weights(Q8_0, WIDTH, WORDS, 0.1)}
for layer in range(2):
    for part, kind in (("q", Q4_0), ("k", Q4_0), ("v", Q8_0), ("out", Q4_K), ("gate", Q4_K), ("up", Q8_0), ("down", Q6_K)):
        parameters[(f"{layer}{part}", kind)] = weights(kind, WIDTH, WIDTH, 0.06)
words = struct.pack(f"<{TOKENS}i", *(random.randrange(WORDS) for _ in range(TOKENS)))
positions = struct.pack(f"<{TOKENS}i", *range(TOKENS))
mask = floats([0.0 if key <= query else -math.inf for query in range(TOKENS) for key in range(TOKENS)])


def model(g):
    context = g.context
    inputs = {name: g.input(kind, WIDTH, len(data) // bytes_of(kind, WIDTH, 1), data) for (name, kind), data in parameters.items()}
    at = g.input(26, TOKENS, 1, positions)
    hidden = op2["get_rows"](context, inputs["embedding"], g.input(26, TOKENS, 1, words))
    causal = g.input(F32, TOKENS, TOKENS, mask)
    for layer in range(2):
        product = lambda part, of: op2["mul_mat"](context, inputs[f"{layer}{part}"], of)
        normed = rms_norm(context, hidden, 1e-5)
        heads = lambda part: reshape_3d(context, product(part, normed), HEAD, HEADS, TOKENS)
        rotated = lambda part: rope(context, heads(part), at, None, HEAD, 0, 0, 1e4, 1.0, 0.0, 1.0, 0.0, 0.0)
        query = permute(context, rotated("q"), 0, 2, 1, 3)
        key = permute(context, rotated("k"), 0, 2, 1, 3)
        value = op1["cont"](context, permute(context, heads("v"), 1, 2, 0, 3))
        scores = soft_max(context, op2["mul_mat"](context, key, query), causal, HEAD**-0.5, 0.0)
        mixed = permute(context, op2["mul_mat"](context, value, scores), 0, 2, 1, 3)
        hidden = op2["add"](context, hidden, product("out", cont_2d(context, mixed, WIDTH, TOKENS)))
        normed = rms_norm(context, hidden, 1e-5)
        gated = op2["mul"](context, op1["silu"](context, product("gate", normed)), product("up", normed))
        hidden = op2["add"](context, hidden, product("down", gated))
    return op2["mul_mat"](context, inputs["logits"], rms_norm(context, hidden, 1e-5))


# From the second run of the same graph on, it is a HIP graph.
compare("two layers", model, 5e-3, times=4)
tests.end()
