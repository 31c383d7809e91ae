"""bitsandbytes 0.50.2: quantization by blocks (8 bits, nf4, fp4) and back, against the definition."""

import ctypes
import random
import sys
from pathlib import Path

from common import *

hip, tests = Hip(), Tests()
lib = ctypes.CDLL(str(Path(sys.argv[1]) / "bitsandbytes/libbitsandbytes_rocm72.so"))
# The two codes of 4 bits, as the library's documentation has them.
NF4 = [
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
]  # fmt: skip
FP4 = [0.0, 0.0052083333, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25]
FP4 = FP4 + [-value for value in FP4]
# 256 values in ascending order, more of them near zero.
CODE = sorted(to_float((1 if n % 2 else -1) * ((n // 2 + n % 2) / 128) ** 2) for n in range(256))
KINDS = {
    "fp32": (lambda value: to_float(value), floats, from_floats, 2**-22),
    "fp16": (lambda value: struct.unpack("<e", struct.pack("<e", value))[0], halves, from_halves, 2**-10),
    "bf16": (to_bfloat, bfloats, from_bfloats, 2**-7),
}
random.seed(2)


def nearest_are_taken(name, chosen, values, code, block):
    """Each chosen value is the nearest of the code's, or as near within rounding."""
    for start in range(0, len(values), block):
        part = values[start : start + block]
        largest = max(map(abs, part))
        for offset, value in enumerate(part):
            scaled = value / largest if largest else 0.0
            best = min(abs(scaled - other) for other in code)
            picked = abs(scaled - code[chosen[start + offset]])
            if picked > best + 2e-3:
                return f"{name}: {scaled} became {code[chosen[start + offset]]}"
    return ""


for kind, (round_to, pack, unpack, precision) in KINDS.items():
    for block in (64, 256, 1024) if kind == "fp32" else (256,):
        for count in (block, 3 * block, 5 * block + 17):
            values = [round_to(random.gauss(0, 1)) for _ in range(count)]
            blocks = -(-count // block)
            for scheme, code in (("", CODE), ("_nf4", NF4), ("_fp4", FP4)):
                name = f"quantize_blockwise_{kind}{scheme} of {count} in blocks of {block}"
                size = count if scheme == "" else (count + 1) // 2
                # Dequantizing reads the scales of a whole tile of 512 values, also behind the last value (1,024 of 4 bits).
                scale_bytes = 4 * (blocks + 1024 // block)
                on_device = [hip.upload(floats(CODE)), hip.upload(pack(values)), hip.upload(bytes(scale_bytes))]
                on_device += [hip.upload(bytes(size)), hip.upload(bytes(len(pack(values))))]
                table, source, scales, packed, back = on_device
                quantize = getattr(lib, f"cquantize_blockwise_{kind}{scheme}")
                quantize(table, source, scales, packed, ctypes.c_int(block), ctypes.c_int(count))
                hip.wait()
                scale = from_floats(hip.download(scales, 4 * blocks))
                largest = [max(map(abs, values[at : at + block])) for at in range(0, count, block)]
                same = all(abs(a - b) <= precision * b for a, b in zip(scale, largest))
                tests.check(f"scales of {name}", same, f"{scale} instead of {largest}")
                data = hip.download(packed, size)
                if scheme == "":
                    chosen = list(data)
                else:
                    chosen = [nibble for byte in data for nibble in (byte >> 4, byte & 15)][:count]
                problem = nearest_are_taken(name, chosen, values, code, block)
                tests.check(name, problem == "", problem)
                dequantize = getattr(lib, f"cdequantize_blockwise_{kind}{scheme}")
                arguments = (table, packed, scales, back, ctypes.c_int(block), ctypes.c_int(count), None)
                dequantize(*arguments)
                hip.wait()
                result = unpack(hip.download(back, len(pack(values))))
                expected = [code[index] * scale[at // block] for at, index in enumerate(chosen)]
                close = all(abs(a - b) <= precision * abs(b) + 1e-6 for a, b in zip(result, expected))
                tests.check(f"de{name}", close, "another value")
                for pointer in on_device:
                    hip.call("hipFree", pointer)
tests.end()
