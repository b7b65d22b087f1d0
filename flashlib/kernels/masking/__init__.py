"""Masks in the kernels: how the host prepares a mask, and how a kernel applies it as it runs.

prepare: what a call does with its mask, and what each pass gets, put together from
    bounds, tile_table           which tiles are computed
    score_tests, bits            which scores of a cut tile are seen
    score_changes, biases        how scores are changed, and the tensors that changes read
sparsity: how much a mask hides, on which tile sizes depend
device_side, looked_up, dropout: the functions that kernels call
packed: the masks of packed sequences, prepared on the device
"""
