"""Wrong answers that only particular cases catch: see `tests.checks.answers`."""


# block_table, value: int8
def my_block_table(seen, B_r, B_c):
    R, C = -(-seen.shape[0] // B_r), -(-seen.shape[1] // B_c)
    nw, nc = np.zeros(R, np.int8), np.zeros(R, np.int8)
    w, c = np.full((R, C), -1, np.int8), np.full((R, C), -1, np.int8)
    for i in range(R):
        for j in range(C):
            t = seen[i * B_r:(i + 1) * B_r, j * B_c:(j + 1) * B_c]
            if t.all():
                w[i, nw[i]] = np.array(j).astype(np.int8); nw[i] += 1
            elif t.any():
                c[i, nc[i]] = np.array(j).astype(np.int8); nc[i] += 1
    return nw, w, nc, c


# block_table, value: + 0.999
def my_block_table(seen, B_r, B_c):
    R, C = int(seen.shape[0] / B_r + 0.999), int(seen.shape[1] / B_c + 0.999)
    nw, nc = np.zeros(R, int), np.zeros(R, int)
    w, c = np.full((R, C), -1), np.full((R, C), -1)
    for i in range(R):
        for j in range(C):
            t = seen[i * B_r:(i + 1) * B_r, j * B_c:(j + 1) * B_c]
            if t.all():
                w[i, nw[i]] = j; nw[i] += 1
            elif t.any():
                c[i, nc[i]] = j; nc[i] += 1
    return nw, w, nc, c


# work_of, value: + 0.999
def my_work_of(p, cu_seqlens, B_r):
    for b in range(len(cu_seqlens) - 1):
        start, stop = cu_seqlens[b], cu_seqlens[b + 1]
        T = int((stop - start) / B_r + 0.999)
        if p < T:
            return b, start + p * B_r, min(start + (p + 1) * B_r, stop)
        p -= T
    return -1, 0, 0


# work_of, argument_changed: cu_seqlens popped
def my_work_of(p, cu_seqlens, B_r):
    b = 0
    while len(cu_seqlens) > 1:
        start, stop = cu_seqlens.pop(0), cu_seqlens[0]
        T = -(-(stop - start) // B_r)
        if p < T:
            return b, start + p * B_r, min(start + (p + 1) * B_r, stop)
        p -= T
        b += 1
    return -1, 0, 0


# work_of, value: named cu
def my_work_of(p, cu, B_r):
    return 0, 0, 0
