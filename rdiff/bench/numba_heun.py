"""BridgeHeun for join-the-shortest-queue, b = 1, beta = 1, written out by hand for numba: the fastest loop we know in it."""

import math

import numba
import numpy as np

f32, u32 = numba.float32, numba.uint32
TINY, FLOOR = np.float32(2.0**-23), np.float32(1e-12)


@numba.njit(inline="always")
def _uniform(s0, s1, s2, s3):
    """xoshiro128+: one uniform in (0, 1) and the next state."""
    word = u32(s0 + s3)
    shifted = u32(s1 << u32(9))
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = u32(u32(s3 << u32(11)) | u32(s3 >> u32(21)))
    return (f32(np.int32(word >> u32(9))) + f32(0.5)) * TINY, s0, s1, s2, s3


@numba.njit(inline="always", fastmath=True, error_model="numpy")
def _step(y1, y2, h, scale, z, mark):
    """One step; `scale` is sqrt(2 h), the standard deviation of the free rise."""
    half, one, zero = f32(0.5), f32(1), f32(0)
    dn, d2 = (one - y1 - y2) * h + scale * z, -y2 * h
    spread = f32(4) * h * mark
    root = math.sqrt(dn * dn + spread)
    larger = half * (root + abs(dn))
    smaller = f32(0.25) * spread / larger
    a, c = (smaller, larger) if dn > zero else (larger, smaller)
    inverse = one / root
    q, p = a * inverse, c * inverse
    x = root / scale
    mills = (f32(1.2533141373) + x * (f32(0.76553158) + x * f32(0.18680572))) / (
        one + x * (f32(1.41010961) + x * (f32(0.76679742) + x * f32(0.18680572)))
    )
    xr, k = x * mills, half * scale * mills
    low = max(a - y1, zero)
    pushed = half * low * (low / max(a, FLOOR * scale))  # l <= a; the floor is for a mark of 0
    before1, before2 = k - half * a + pushed, half * d2 * (one - p * xr) + pushed
    after1, after2 = k - a + half * c + low, half * d2 * (one + q * xr) + low
    qh, ph = q * h, p * h
    first = -qh * (before1 + before2)
    free = y1 + dn + first - ph * (after1 + after2)
    push = max(a - y1 - first, max(zero, -free))
    return max(free + push, zero), max(y2 + d2 - qh * before2 - ph * after2 + push, zero)


@numba.njit(fastmath=True, error_model="numpy")
def _lane(s0, s1, s2, s3, burn_in, steps, h):
    """The average of Y2 over one path."""
    scale = math.sqrt(f32(2) * h)
    y1, y2 = f32(0), f32(0)
    total, part = 0.0, f32(0)
    for k in range(0, burn_in + steps, 2):
        # Both normals of Box and Muller, one a step.
        u, s0, s1, s2, s3 = _uniform(s0, s1, s2, s3)
        v, s0, s1, s2, s3 = _uniform(s0, s1, s2, s3)
        radius, angle = math.sqrt(f32(-2) * math.log(u)), f32(2 * math.pi) * v
        u, s0, s1, s2, s3 = _uniform(s0, s1, s2, s3)
        y1, y2 = _step(y1, y2, h, scale, radius * math.cos(angle), -math.log(u))
        part += y2
        u, s0, s1, s2, s3 = _uniform(s0, s1, s2, s3)
        y1, y2 = _step(y1, y2, h, scale, radius * math.sin(angle), -math.log(u))
        part += y2
        if k < burn_in:
            part = f32(0)
        elif k % 64 == 0:
            total += part
            part = f32(0)
    return (total + part) / steps


@numba.njit(parallel=True)
def average(words, burn_in, steps, h):
    """The average of Y2 over paths of `steps` steps of length h after `burn_in`, both even, one path a row of `words`.

    `words`: the generator's states, uint32 of shape (lanes, 4), no row all zero.
    """
    means = np.zeros(len(words), np.float64)
    for i in numba.prange(len(words)):
        means[i] = _lane(words[i, 0], words[i, 1], words[i, 2], words[i, 3], burn_in, steps, h)
    return means.mean()
