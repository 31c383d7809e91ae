#!/usr/bin/env python3
"""What the elementwise kernels cost on the emulated targets, contiguous: prints benches/elementwise.md.

Counts of `candle-amdgpu bench`, which are the same on each run: elementwise.py PATH/candle-amdgpu
"""

import json
import subprocess
import sys

FAMILIES = ["affine", "binary", "cast", "fill", "ternary", "unary"]
TARGETS = {"gfx1030": 32, "gfx1100": 32, "gfx90a": 64}
ELEMENTS = 1 << 16

rows = {}
for gfx in TARGETS:
    command = [sys.argv[1], "bench", "--json", "--gfx", gfx, "--elements", str(ELEMENTS)]
    command += [word for family in FAMILIES for word in ("--family", family)]
    for row in json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["kernels"]:
        counts = row["counts"]
        per_element = counts["wave_instructions"] / row["elements"]
        rows.setdefault(row["kernel"], {})[gfx] = per_element, counts["bytes_moved"] / max(1, counts["bytes_needed"])

moved = {kernel: max(ratio for _, ratio in row.values()) for kernel, row in rows.items()}
more = [kernel for kernel, ratio in moved.items() if ratio > 1.02]
rest = max(ratio for ratio in moved.values() if ratio <= 1.02)
print(f"""# The elementwise kernels on the emulated targets

Wave instructions for each element (one instruction of a wave is of 32 lanes on gfx1030 and gfx1100, of 64 on gfx90a), at
{ELEMENTS:,} contiguous elements in each kernel's own geometry. Made by `benches/elementwise.py`.

The cache lines that an instruction touches have at most {rest:.3f} times the bytes that its lanes ask for, but in {len(more)} of
{len(rows)} kernels: where one tensor has 8 bytes for each element and another fewer than 4, a lane takes 32 consecutive bytes in
two instructions that both touch each line, and of integers that are truncated it loads only the lower bytes. The second
touch finds the line in the cache.

| kernel | {" | ".join(TARGETS)} |
| --- | {" | ".join("---:" for _ in TARGETS)} |""")
for kernel, row in sorted(rows.items()):
    print(f"| {kernel} | {' | '.join(f'{row[gfx][0]:.3f}' for gfx in TARGETS)} |")
