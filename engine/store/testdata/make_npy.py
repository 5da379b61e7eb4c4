"""Writes the .npy files beside this script with numpy: python make_npy.py (numpy 2.4.6 made the committed ones)."""
import numpy as np

np.save("means.npy", (np.arange(12, dtype=np.float32) / 7 - 1).reshape(3, 4))
np.save("margins.npy", np.array([0.5, np.inf, -0.0], dtype=np.float32))
np.save("trajectories.npy", (np.arange(24, dtype=np.float32) / 7 - 1).astype(np.float16).reshape(2, 3, 4))
np.save("scalar.npy", np.float32(3.25))
np.save("empty.npy", np.zeros((0, 5), dtype=np.float16))

# Float32 numbers of all sizes, with ties, subnormals and limits of float16, and what numpy rounds them to.
bits = np.random.default_rng(7).integers(0, 2**32, 3000, dtype=np.uint32)
exponents = np.random.default_rng(8).integers(127 - 26, 127 + 17, 6000, dtype=np.uint32)
near = (bits[:3000].repeat(2) & np.uint32(0x807FFFFF)) | (exponents << np.uint32(23))
halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
ties = ((halves[:-1].astype(np.float64) + halves[1:]) / 2).astype(np.float32)[::8]
special = np.array([0.0, -0.0, np.inf, -np.inf, 65503.9, 65504, 65519.996, 65520, 2.0**-24, 2.0**-25, 2.0**-26, 1e-40], dtype=np.float32)
single = np.concatenate([bits.view(np.float32), near.view(np.float32), ties, np.nextafter(ties, np.float32(1e9)), special])
single = single[~np.isnan(single)]
with np.errstate(over="ignore"):
    np.save("half_rounded.npy", single.astype(np.float16))
np.save("half_single.npy", single)
