#!/usr/bin/env python3
"""What the elementwise kernels cost on the emulated targets, contiguous: prints benches/elementwise.md.

Counts of `candle-amdgpu bench`, which are the same on each run. Usage, with the command built: elementwise.py PATH/candle-amdgpu
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
        counts = row["measured"]["counts"]
        per_element = counts["wave_instructions"] / row["elements"]
        rows.setdefault(row["kernel"], {})[gfx] = per_element, counts["bytes_moved"] / max(1, counts["bytes_needed"])

worst = max(moved for row in rows.values() for _, moved in row.values())
print(f"""# The elementwise kernels on the emulated targets

Wave instructions for each element (one instruction of a wave is of 32 lanes on gfx1030 and gfx1100, of 64 on gfx90a), at
{ELEMENTS:,} contiguous elements in each kernel's own geometry. Made by `benches/elementwise.py`. Cache lines moved have at most
{worst:.3f} times the bytes that lanes ask for.

| kernel | {" | ".join(TARGETS)} |
| --- | {" | ".join("---:" for _ in TARGETS)} |""")
for kernel, row in sorted(rows.items()):
    print(f"| {kernel} | {' | '.join(f'{row[gfx][0]:.3f}' for gfx in TARGETS)} |")
