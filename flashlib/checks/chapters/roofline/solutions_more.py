"""Solution: FLOPs for each byte."""

from flashlib import cost  # noqa: F401  for other answers


# exercise: intensity
def my_intensity(N_q, N_k, d, B_r, itemsize):
    T_r = -(-N_q // B_r)
    moved = (2 * N_q + 2 * T_r * N_k) * d * itemsize + 4 * N_q
    return 4 * N_q * N_k * d / moved
