"""Makes blocks.bin: random quantised blocks of every GGUF type and what gguf-py decodes them to.

Layout, per type in the order of TYPES: n·bytes of raw blocks, then n·elems float32, little-endian.
Run: python make_blocks.py (needs numpy and gguf 0.19.0). The output is gzipped with a fixed time stamp.
"""
import gzip
import numpy as np
from gguf import GGMLQuantizationType as T, GGML_QUANT_SIZES
from gguf.quants import dequantize

TYPES = [T.F16, T.BF16, T.Q4_0, T.Q4_1, T.Q5_0, T.Q8_0, T.Q4_K, T.Q5_K, T.Q6_K]
HALVES = {T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q8_0: [0], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208]}
N = 24

rng = np.random.default_rng(1)
out = b""
for t in TYPES:
    elems, size = GGML_QUANT_SIZES[t]
    n = N if elems > 1 else 512
    raw = rng.integers(0, 256, (n, size), dtype=np.uint8)
    for at in HALVES.get(t, []):  # scales: finite, of both signs, some subnormal or zero
        scale = rng.normal(0, 1, n).astype(np.float16) * np.float16(0.1)
        scale[0], scale[1] = 0, 6e-8
        raw[:, at:at + 2] = scale.view(np.uint8).reshape(n, 2)
    if elems == 1:  # no NaN: its payload is not defined
        bits = raw.view(np.uint16).reshape(n)
        bits[np.isnan(dequantize(raw, t).reshape(n))] = 0
    out += raw.tobytes() + dequantize(raw, t).astype("<f4").tobytes()
with gzip.GzipFile("blocks.bin.gz", "wb", mtime=0) as f:
    f.write(out)
