"""Right answers in further styles: see `tests.checks.answers`."""


# grouped: head by head
def my_grouped(dK, H_k):
    B, H_q, N_k, d = dK.shape
    out = np.zeros((B, H_k, N_k, d), np.promote_types(dK.dtype, np.float32))
    for h in range(H_q): out[:, h // (H_q // H_k)] += dK[:, h]
    return out


# grouped: np.split
def my_grouped(dK, H_k):
    return np.stack([p.sum(axis=1, dtype=np.result_type(dK, np.float32)) for p in np.split(dK, H_k, axis=1)], axis=1)


# grouped: np.add.reduceat
def my_grouped(dK, H_k):
    return np.add.reduceat(dK.astype(np.promote_types(dK.dtype, np.float32)), np.arange(0, dK.shape[1], dK.shape[1] // H_k), axis=1)
