"""Packs 26 circles into the unit square: one in the middle and two rings around it."""
import math

import numpy as np

N = 26


def ring(count, distance):
    """Returns count points evenly spaced on a circle around the middle of the square."""
    turns = [2 * math.pi * k / count for k in range(count)]
    return [(0.5 + distance * math.cos(t), 0.5 + distance * math.sin(t)) for t in turns]


def place_centers():
    """Returns the 26 centers: the middle, a ring of 8, a ring of 16 clipped into the square, and a corner."""
    points = [(0.5, 0.5)] + ring(8, 0.3) + ring(16, 0.7) + [(0.0, 0.0)]
    return np.clip(np.array(points), 0.01, 0.99)


def grow_radii(centers):
    """Returns radii that fit: up to the walls first, then each overlapping pair shrunk in proportion."""
    radii = np.minimum(centers, 1 - centers).min(axis=1)
    for i in range(N):
        for j in range(i + 1, N):
            dx, dy = centers[i] - centers[j]
            gap = math.sqrt(dx * dx + dy * dy)
            if radii[i] + radii[j] > gap:
                scale = gap / (radii[i] + radii[j])
                radii[i] *= scale
                radii[j] *= scale
    return radii


def run_packing():
    """Returns the centers (26 x 2), the radii (26) and the sum of the radii."""
    centers = place_centers()
    radii = grow_radii(centers)
    return centers, radii, float(radii.sum())
