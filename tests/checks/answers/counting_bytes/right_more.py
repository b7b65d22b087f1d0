"""Right answers to the exercises under More in other styles: see `tests.checks.answers`."""


# fa1: lists of blocks for m and l, O stored after the yield
def my_fa1(Q, K, V, O, B_r, B_c, causal, scale):
    N_q, N_k = len(Q), len(K)
    O.fill(0)
    rows_of = list(blocks(N_q, B_r))
    m_hbm = [np.full(r.stop - r.start, -np.inf) for r in rows_of]
    l_hbm = [np.zeros(r.stop - r.start) for r in rows_of]
    for j, cols in enumerate(blocks(N_k, B_c)):
        K_j, V_j = np.array(K[cols]), np.array(V[cols])
        for i in range(len(rows_of)):
            rows = rows_of[i]
            if causal and is_hidden(rows, cols, N_k - N_q):
                continue
            S = (Q[rows] * scale) @ K_j.T
            if causal:
                np.putmask(S, ~is_visible(rows, cols, N_k - N_q), -np.inf)
            m = np.maximum(m_hbm[i], S.max(axis=1))
            shift = np.where(m == -np.inf, 0, m)
            P, alpha = np.exp(S - shift[:, None]), np.exp(m_hbm[i] - shift)
            O_acc = alpha[:, None] * (O[rows] * l_hbm[i][:, None]) + P @ V_j
            l_hbm[i] = alpha * l_hbm[i] + P.sum(axis=1)
            m_hbm[i] = m
            yield Step(i, j, m, l_hbm[i], O_acc)
            O[rows] = O_acc / np.where(l_hbm[i] > 0, l_hbm[i], 1)[:, None]


# fa1: the recurrence of One pass, row by row
def my_fa1(Q, K, V, O, B_r, B_c, causal, scale):
    N_q, N_k, d = len(Q), len(K), Q.shape[1]
    O[...] = np.zeros((N_q, d))
    ms, ls = -np.inf * np.ones(N_q), np.zeros(N_q)
    for j in range(-(-N_k // B_c)):
        k = [row for row in K[j * B_c : (j + 1) * B_c]]
        v = [row for row in V[j * B_c : (j + 1) * B_c]]
        for i in range(-(-N_q // B_r)):
            last = min((i + 1) * B_r, N_q) - 1
            if causal and j * B_c > last + N_k - N_q:
                continue
            acc = np.zeros((last + 1 - i * B_r, d))
            for r in range(i * B_r, last + 1):
                q = Q[r]
                n = len(k) if not causal else max(0, min(len(k), r + N_k - N_q + 1 - j * B_c))
                if n:
                    s = np.array([scale * (q @ k[c]) for c in range(n)])
                    new = max(ms[r], s.max())
                    p = np.exp(s - new)
                    kept = np.exp(ms[r] - new) * ls[r]
                    total = kept + p.sum()
                    O[r] = kept / total * O[r] + sum(w * x for w, x in zip(p, v)) / total
                    ms[r], ls[r] = new, total
                acc[r - i * B_r] = O[r] * ls[r]
            yield Step(i, j, ms[i * B_r : last + 1], ls[i * B_r : last + 1], acc)


# fa1: the loads in a helper
def my_fa1(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    O.fill(0)
    M, L = np.full(len(Q), -np.inf), np.zeros(len(Q))
    for j, cols in enumerate(blocks(len(K), B_c)):
        k, v = K[cols], V[cols]
        for i, rows in enumerate(blocks(len(Q), B_r)):
            if causal and is_hidden(rows, cols, past):
                continue
            S = scale * Q[rows] @ k.T
            if causal:
                S[~is_visible(rows, cols, past)] = -np.inf
            m = np.maximum(M[rows], S.max(axis=1))
            sh = np.where(m == -np.inf, 0, m)
            a, P = np.exp(M[rows] - sh), np.exp(S - sh[:, None])
            A = O[rows] * L[rows, None] * a[:, None] + P @ v
            l = a * L[rows] + P.sum(axis=1)
            M[rows], L[rows] = m, l
            O[rows] = A / np.where(l > 0, l, 1)[:, None]
            yield Step(i, j, m, l, A)


# best_tile: max by a key
def my_best_tile(N, d, capacity, dtype):
    tiles = [(1 << r, 1 << c) for r in range(4, 11) for c in range(4, 11)]
    fits = filter(lambda t: cost.sram_bytes(*t, d, dtype) <= capacity, tiles)
    return min(fits, key=lambda t: (cost.fa2_traffic(N, N, d, B_r=t[0], B_c=t[1], dtype=dtype).total, -t[1], t[0]))


# best_tile: the first of the best
def my_best_tile(N, d, capacity, dtype):
    best, tile = float("inf"), None
    for B_r in [2**p for p in range(4, 11)]:
        for B_c in [2**p for p in range(10, 3, -1)]:
            if cost.sram_bytes(B_r, B_c, d, dtype) <= capacity:
                t = cost.fa2_traffic(N, N, d, B_r=B_r, B_c=B_c, dtype=dtype).total
                if t < best: best, tile = t, (B_r, B_c)
    return tile


# best_tile: a key for min
def my_best_tile(N, d, capacity, dtype):
    from itertools import product

    sizes = (16, 32, 64, 128, 256, 512, 1024)
    fits = (t for t in product(sizes, sizes) if cost.sram_bytes(*t, d, dtype) <= capacity)
    return min(fits, key=lambda t: (cost.fa2_traffic(N, N, d, B_r=t[0], B_c=t[1], dtype=dtype).total, -t[1], t[0]))


# best_tile: the best so far, from the largest B_c down
def my_best_tile(N, d, capacity, dtype):
    best, fewest = (16, 16), float("inf")
    for c in range(10, 3, -1):
        for r in range(4, 11):
            if cost.sram_bytes(2**r, 2**c, d, dtype) > capacity:
                continue
            moved = cost.fa2_traffic(N, N, d, B_r=2**r, B_c=2**c, dtype=dtype).total
            if moved < fewest:
                best, fewest = (2**r, 2**c), moved
    return best


# best_tile: NumPy, a list returned
def my_best_tile(N, d, capacity, dtype):
    tiles = np.array([(1 << r, 1 << c) for r in range(4, 11) for c in range(4, 11)])
    tiles = tiles[[cost.sram_bytes(int(r), int(c), d, dtype) <= capacity for r, c in tiles]]
    moved = [cost.fa2_traffic(N, N, d, B_r=int(r), B_c=int(c), dtype=dtype).total for r, c in tiles]
    return list(tiles[np.lexsort((tiles[:, 0], -tiles[:, 1], moved))[0]])
