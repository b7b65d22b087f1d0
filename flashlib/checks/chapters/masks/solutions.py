"""Solutions of this chapter."""

import numpy as np

from flashlib.tiled import blocks


# exercise: window_bounds
def my_window_bounds(i, N_q, N_k, B_r, B_c, left, right):
    past, T_c = N_k - N_q, -(-N_k // B_c)
    top = i * B_r + past  # the position of the first row
    bottom = min((i + 1) * B_r, N_q) - 1 + past  # and of the last
    first = max(0, top - left) // B_c
    end = max(0, min(T_c, (bottom + right) // B_c + 1))
    whole_first = -(-max(0, bottom - left) // B_c)  # all rows see keys bottom - left to top + right
    whole_end = T_c if top + right >= N_k - 1 else max(0, (top + right + 1) // B_c)
    return first, end, whole_first, whole_end


# exercise: block_table
def my_block_table(seen, B_r, B_c):
    row_blocks, col_blocks = (list(blocks(N, B)) for N, B in zip(seen.shape, (B_r, B_c), strict=True))
    n_whole, n_cut = (np.zeros(len(row_blocks), int) for _ in range(2))
    whole, cut = (np.full((len(row_blocks), len(col_blocks)), -1) for _ in range(2))
    for i, rows in enumerate(row_blocks):
        for j, cols in enumerate(col_blocks):
            tile = seen[rows, cols]
            if tile.all():
                whole[i, n_whole[i]] = j
                n_whole[i] += 1
            elif tile.any():
                cut[i, n_cut[i]] = j
                n_cut[i] += 1
    return n_whole, whole, n_cut, cut


# exercise: work_of
def my_work_of(p, cu_seqlens, B_r):
    for b in range(len(cu_seqlens) - 1):
        start, stop = cu_seqlens[b], cu_seqlens[b + 1]
        T_r = -(-(stop - start) // B_r)
        if p < T_r:
            first = start + p * B_r
            return b, first, min(first + B_r, stop)
        p = p - T_r
    return -1, 0, 0
