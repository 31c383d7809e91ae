"""What the clients share: HIP through ctypes, and the count of what was right."""

import ctypes
import json
import struct
import sys


class Hip:
    def __init__(self):
        self.lib = ctypes.CDLL("libamdhip64.so", mode=ctypes.RTLD_GLOBAL)
        self.lib.hipGetErrorString.restype = ctypes.c_char_p

    def call(self, name, *arguments):
        code = getattr(self.lib, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name}: {self.lib.hipGetErrorString(code).decode()}")

    def empty(self, size):
        pointer = ctypes.c_void_p()
        self.call("hipMalloc", ctypes.byref(pointer), ctypes.c_size_t(size))
        return pointer

    def upload(self, data):
        pointer = self.empty(len(data))
        self.call("hipMemcpy", pointer, ctypes.c_char_p(data), ctypes.c_size_t(len(data)), 1)
        return pointer

    def download(self, pointer, size):
        data = ctypes.create_string_buffer(size)
        self.call("hipMemcpy", data, pointer, ctypes.c_size_t(size), 2)
        return data.raw

    def wait(self):
        self.call("hipDeviceSynchronize")


class Tests:
    """Counts tests; the last line of output says how many there were, and which were wrong."""

    def __init__(self):
        self.count, self.wrong = 0, []

    def check(self, name, is_right, what=""):
        self.count += 1
        if not is_right:
            self.wrong.append(f"{name}: {what}" if what else name)
            print(f"wrong: {self.wrong[-1]}")

    def end(self):
        print(json.dumps({"tests": self.count, "wrong": self.wrong}))
        sys.exit(1 if self.wrong else 0)


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def from_floats(data):
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def halves(values):
    return struct.pack(f"<{len(values)}e", *values)


def from_halves(data):
    return list(struct.unpack(f"<{len(data) // 2}e", data))


def bfloats(values):
    """Of floats whose lower 16 bits are zero."""
    return b"".join(struct.pack("<f", value)[2:] for value in values)


def from_bfloats(data):
    pairs = (data[at : at + 2] for at in range(0, len(data), 2))
    return [struct.unpack("<f", b"\0\0" + pair)[0] for pair in pairs]


def to_float(value):
    """The nearest f32."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def to_bfloat(value):
    """A bf16 at or next to the value."""
    return struct.unpack("<f", b"\0\0" + struct.pack("<f", value)[2:])[0]
