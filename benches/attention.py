"""What candle/candle-flash-attn's example `speed` prints, of PyTorch's flash attention and cuDNN's."""

import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

dtype = torch.float16 if "f16" in sys.argv[1:] else torch.bfloat16


def tensor(which, shape):
    n = 1
    for size in shape:
        n *= size
    i = torch.arange(n, device="cuda", dtype=torch.int64)
    h = (i * 2654435761 + which * 0x9E3779B9) & 0xFFFFFFFF
    h = ((h ^ (h >> 15)) * 2246822519) & 0xFFFFFFFF
    x = (h >> 16).to(torch.float32) / 32768 - 1
    return x.to(dtype).reshape(shape)


def timed(once):
    for _ in range(3):
        once()
    times = []
    for _ in range(5):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(10):
            once()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 10)
    return sorted(times)[2]


def run(batch, queries, keys, kv_heads, group, dim, causal):
    heads = kv_heads * group
    q = tensor(1, (batch, queries, heads, dim)).transpose(1, 2)
    k, v = (tensor(n, (batch, keys, kv_heads, dim)).transpose(1, 2) for n in (2, 3))
    line = f"batch {batch} queries {queries} keys {keys} heads {heads}/{kv_heads} dim {dim}{' causal' if causal else ''}:"
    for name, backend in [("flash", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION)]:
        try:
            with sdpa_kernel(backend):
                once = lambda: scaled_dot_product_attention(q, k, v, is_causal=causal and queries > 1, enable_gqa=group > 1)
                out = once().transpose(1, 2).reshape(-1)[-dim:].float()
                ms = timed(once)
        except RuntimeError as error:
            print(line, name, "not supported:", str(error).splitlines()[0][:80])
            continue
        flop = 4 * batch * heads * queries * keys * dim / (2 if causal else 1)
        some = [round(out[n].item(), 5) for n in (0, 1, dim // 2, dim - 1)]
        size = 2 * (2 * q.numel() + k.numel() + v.numel())
        print(line, f"{name} {ms:.4f} ms, {flop / ms / 1e9:.1f} TFLOP/s, {size / ms / 1e6:.0f} GB/s, {some}", flush=True)


for dim in (64, 128):
    for causal in (False, True):
        for tokens in (1024, 2048, 4096, 8192, 16384):
            run(16384 // tokens, tokens, tokens, 2048 // dim, 1, dim, causal)
for keys in (4096, 32768):
    for kv_heads, group in ((8, 4), (32, 1)):
        for batch in (1, 8):
            run(batch, 1, keys, kv_heads, group, 128, True)
x = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
y = torch.empty_like(x)
print(f"copy of 1 GiB: {2 * x.numel() / timed(lambda: y.copy_(x)) / 1e6:.0f} GB/s")
