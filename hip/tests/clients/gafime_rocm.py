"""gafime-rocm 0.4.7: statistics of products of features, against sums in f64."""

import ctypes
import random
import sys
from itertools import combinations
from pathlib import Path

from common import Tests

SAMPLES, FEATURES = 500, 6
tests = Tests()
lib = ctypes.CDLL(str(Path(sys.argv[1]) / "gafime_rocm/libgafime_rocm.so"))
tests.check("a device", lib.gafime_rocm_available() == 1)
random.seed(1)
features = [[random.uniform(-2, 2) for _ in range(SAMPLES)] for _ in range(FEATURES)]
target = [sum(column[row] for column in features) + random.gauss(0, 1) for row in range(SAMPLES)]
means = [sum(column) / SAMPLES for column in features]
mask = [0] * SAMPLES


def array(kind, values):
    return (kind * len(values))(*values)


matrix = ctypes.c_void_p()
tests.check("matrix_alloc", lib.gafime_rocm_matrix_alloc(SAMPLES, FEATURES, 1024, ctypes.byref(matrix)) == 0)
code = lib.gafime_rocm_matrix_upload(
    matrix,
    array(ctypes.c_float, [value for column in features for value in column]),
    array(ctypes.c_float, target),
    array(ctypes.c_uint8, mask),
    array(ctypes.c_float, means),
)
tests.check("matrix_upload", code == 0)
for arity in range(1, 6):
    combos = list(combinations(range(FEATURES), arity))
    out = (ctypes.c_float * (12 * len(combos)))()
    indices = array(ctypes.c_int, [index for combo in combos for index in combo])
    code = lib.gafime_rocm_matrix_compute_batch(matrix, indices, arity, len(combos), 255, out)
    tests.check(f"compute_batch of {arity}", code == 0)
    for number, combo in enumerate(combos):
        x = []
        for row in range(SAMPLES):
            product = 1.0
            for feature in combo:
                product *= features[feature][row] - (means[feature] if arity > 1 else 0.0)
            x.append(product)
        expected = [
            SAMPLES,
            sum(x),
            sum(target),
            sum(a * a for a in x),
            sum(b * b for b in target),
            sum(a * b for a, b in zip(x, target)),
        ]
        # How far a sum in f32 may be off.
        scale = [1, sum(map(abs, x)), sum(map(abs, target)), expected[3], expected[4]]
        scale.append(sum(abs(a * b) for a, b in zip(x, target)))
        actual = list(out[12 * number : 12 * number + 6])
        is_right = all(abs(a - e) <= 1e-5 * max(s, 1e-6) for a, e, s in zip(actual, expected, scale))
        tests.check(f"statistics of {combo}", is_right, f"{actual} instead of {expected}")
tests.check("matrix_free", lib.gafime_rocm_matrix_free(matrix) == 0)
tests.end()
