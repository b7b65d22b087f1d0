"""Wrong answers to the exercises under More: see `tests.checks.answers`."""


# fa1, O_unnormalised: O divided at the end
def my_fa1(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    O[:] = 0
    M, L = np.full(len(Q), -np.inf), np.zeros(len(Q))
    for j, cols in enumerate(blocks(len(K), B_c)):
        K_j, V_j = K[cols], V[cols]
        for i, rows in enumerate(blocks(len(Q), B_r)):
            if causal and is_hidden(rows, cols, past):
                continue
            S = Q[rows] @ K_j.T * scale
            if causal:
                S[~is_visible(rows, cols, past)] = -np.inf
            m = np.maximum(M[rows], S.max(axis=1))
            safe = np.where(np.isinf(m), 0, m)
            alpha = np.exp(M[rows] - safe)
            P = np.exp(S - safe[:, None])
            L[rows] = alpha * L[rows] + P.sum(axis=1)
            O[rows] = alpha[:, None] * O[rows] + P @ V_j
            M[rows] = m
            yield Step(i, j, m, L[rows], O[rows])
    O /= np.where(L == 0, 1, L)[:, None]


# fa1, O_unnormalised: O never divided
def my_fa1(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    O[:] = 0
    M, L = np.full(len(Q), -np.inf), np.zeros(len(Q))
    for j, cols in enumerate(blocks(len(K), B_c)):
        K_j, V_j = K[cols], V[cols]
        for i, rows in enumerate(blocks(len(Q), B_r)):
            if causal and is_hidden(rows, cols, past):
                continue
            S = Q[rows] @ K_j.T * scale
            if causal:
                S[~is_visible(rows, cols, past)] = -np.inf
            m = np.maximum(M[rows], S.max(axis=1))
            safe = np.where(np.isinf(m), 0, m)
            alpha = np.exp(M[rows] - safe)
            P = np.exp(S - safe[:, None])
            L[rows] = alpha * L[rows] + P.sum(axis=1)
            O[rows] = alpha[:, None] * O[rows] + P @ V_j
            M[rows] = m
            yield Step(i, j, m, L[rows], O[rows])


# fa1, loops_exchanged: the loops the other way round
def my_fa1(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    O[:] = 0
    for i, rows in enumerate(blocks(len(Q), B_r)):
        m_i, l_i = np.full(rows.stop - rows.start, -np.inf), np.zeros(rows.stop - rows.start)
        for j, cols in enumerate(blocks(len(K), B_c)):
            if causal and is_hidden(rows, cols, past):
                break
            S = Q[rows] @ K[cols].T * scale
            if causal:
                S = np.where(is_visible(rows, cols, past), S, -np.inf)
            m = np.maximum(m_i, S.max(axis=1))
            shift = np.where(m == -np.inf, 0, m)
            P = np.exp(S - shift[:, None])
            O_acc = (np.exp(m_i - shift) * l_i)[:, None] * O[rows] + P @ V[cols]
            l_i = np.exp(m_i - shift) * l_i + P.sum(axis=1)
            m_i = m
            O[rows] = O_acc / np.where(l_i == 0, 1, l_i)[:, None]
            yield Step(i, j, m_i, l_i, O_acc)


# fa1, O_not_unnormalised: one O for all
def my_fa1(Q, K, V, O, B_r, B_c, causal, scale):
    N_q, N_k = Q.shape[0], K.shape[0]
    O[...] = 0.0
    state = {i: (np.full(rows.stop - rows.start, -np.inf), 0.0) for i, rows in enumerate(blocks(N_q, B_r))}
    for j, cols in enumerate(blocks(N_k, B_c)):
        k, v = K[cols], V[cols]
        for i, rows in enumerate(blocks(N_q, B_r)):
            if causal and is_hidden(rows, cols, N_k - N_q):
                continue
            m_i, l_i = state[i]
            scores = scale * (Q[rows] @ k.T)
            if causal:
                scores[~is_visible(rows, cols, N_k - N_q)] = -np.inf
            m = np.maximum(m_i, scores.max(-1))
            shift = np.where(m > -np.inf, m, 0.0)
            p, alpha = np.exp(scores - shift[:, None]), np.exp(m_i - shift)
            l = alpha * l_i + p.sum(-1)
            acc = alpha[:, None] * O[rows] + p @ v
            O[rows] = acc / np.where(l > 0, l, 1)[:, None]
            state[i] = m, l
            yield Step(i, j, m, l, acc)


# fa1, O_not_stored: O kept aside, written at the end
def my_fa1(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    m_hbm, l_hbm, acc = np.full(len(Q), -np.inf), np.zeros(len(Q)), np.zeros(Q.shape)
    for j, cols in enumerate(blocks(len(K), B_c)):
        K_j, V_j = K[cols], V[cols]
        for i, rows in enumerate(blocks(len(Q), B_r)):
            if causal and is_hidden(rows, cols, past):
                continue
            S = Q[rows] @ K_j.T * scale
            if causal:
                S = np.where(is_visible(rows, cols, past), S, -np.inf)
            m = np.maximum(m_hbm[rows], S.max(axis=1))
            shift = np.where(m == -np.inf, 0, m)
            alpha, P = np.exp(m_hbm[rows] - shift), np.exp(S - shift[:, None])
            l_hbm[rows] = alpha * l_hbm[rows] + P.sum(axis=1)
            acc[rows] = alpha[:, None] * acc[rows] + P @ V_j
            m_hbm[rows] = m
            yield Step(i, j, m, l_hbm[rows], acc[rows])
    O[:] = acc / np.where(l_hbm == 0, 1, l_hbm)[:, None]


# fa1, all_held: all blocks of Q in a list
def my_fa1(Q, K, V, O, B_r, B_c, causal, scale):
    past = len(K) - len(Q)
    rows_of = list(blocks(len(Q), B_r))
    queries = [Q[rows] * scale for rows in rows_of]
    O[:] = 0
    m_hbm, l_hbm = np.full(len(Q), -np.inf), np.zeros(len(Q))
    for j, cols in enumerate(blocks(len(K), B_c)):
        K_j, V_j = K[cols], V[cols]
        for i, rows in enumerate(rows_of):
            if causal and is_hidden(rows, cols, past):
                continue
            S = queries[i] @ K_j.T
            if causal:
                S = np.where(is_visible(rows, cols, past), S, -np.inf)
            m = np.maximum(m_hbm[rows], S.max(axis=1))
            shift = np.where(m == -np.inf, 0, m)
            alpha, P = np.exp(m_hbm[rows] - shift), np.exp(S - shift[:, None])
            O_acc = (alpha * l_hbm[rows])[:, None] * O[rows] + P @ V_j
            m_hbm[rows], l_hbm[rows] = m, alpha * l_hbm[rows] + P.sum(axis=1)
            O[rows] = O_acc / np.where(l_hbm[rows] == 0, 1, l_hbm[rows])[:, None]
            yield Step(i, j, m, l_hbm[rows], O_acc)


# best_tile, float: powers of a float
def my_best_tile(N, d, capacity, dtype):
    best = None
    for p in range(4, 11):
        for q in range(4, 11):
            B_r, B_c = 2**p, 2**q
            if cost.sram_bytes(B_r, B_c, d, dtype) <= capacity:
                key = (cost.fa2_traffic(N, N, d, B_r=B_r, B_c=B_c, dtype=dtype).total, -B_c, B_r)
                best = min(best or key, key)
    return float(best[2]), float(-best[1])


# best_tile, square: squares, in a loop of its own
def my_best_tile(N, d, capacity, dtype):
    B = 16
    while B < 1024 and cost.sram_bytes(2 * B, 2 * B, d, dtype) <= capacity:
        B *= 2
    return B, B


# best_tile, less_than: the best so far, without a tile to begin with
def my_best_tile(N, d, capacity, dtype):
    best = None
    for B_r in (16, 32, 64, 128, 256, 512, 1024):
        for B_c in (1024, 512, 256, 128, 64, 32, 16):
            if cost.sram_bytes(B_r, B_c, d, dtype) < capacity:
                key = cost.fa2_traffic(N, N, d, B_r=B_r, B_c=B_c, dtype=dtype).total, -B_c, B_r
                if best is None or key < best:
                    best = key
    return best[2], -best[1]


# best_tile, less_than: 16 x 16 to begin with
def my_best_tile(N, d, capacity, dtype):
    best = cost.fa2_traffic(N, N, d, B_r=16, B_c=16, dtype=dtype).total, -16, 16
    for B_r in (16, 32, 64, 128, 256, 512, 1024):
        for B_c in (16, 32, 64, 128, 256, 512, 1024):
            if cost.sram_bytes(B_r, B_c, d, dtype) < capacity:
                best = min(best, (cost.fa2_traffic(N, N, d, B_r=B_r, B_c=B_c, dtype=dtype).total, -B_c, B_r))
    return best[2], -best[1]


# best_tile, smallest_B_c: the first of equal ones
def my_best_tile(N, d, capacity, dtype):
    best, fewest = (16, 16), float("inf")
    for B_r in (16, 32, 64, 128, 256, 512, 1024):
        for B_c in (16, 32, 64, 128, 256, 512, 1024):
            moved = cost.fa2_traffic(N, N, d, B_r=B_r, B_c=B_c, dtype=dtype).total
            if cost.sram_bytes(B_r, B_c, d, dtype) <= capacity and moved < fewest:
                best, fewest = (B_r, B_c), moved
    return best
