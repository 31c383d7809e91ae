"""kitten (haaztest-kitten-inference-tts2-rocm 0.2.0): the engine loads, with every symbol that it needs."""

import ctypes
import os
import sys
from pathlib import Path

from common import Hip, Tests

tests = Tests()
Hip()
path = Path(sys.argv[1]) / "kitten_inference/_tts2_rocm/lib/libkt2n_engine.so"
try:
    ctypes.CDLL(str(path), mode=os.RTLD_NOW)
    tests.check("load", True)
except OSError as error:
    tests.check("load", False, str(error))
tests.end()
