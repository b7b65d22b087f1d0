"""Wrong answers to the last exercise of chapter 15, older than its table: see `tests.checks.answers`."""


# decode, tile_for_page: a tile is taken for a page
@triton.jit
def split_kernel(q_ptr, k_ptr, v_ptr, len_ptr, tab_ptr, m_ptr, l_ptr, acc_ptr, HK, G, PAGE, W, SPLITS, scale,
                 D: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    s = pid % SPLITS
    hk = pid // SPLITS % HK
    b = pid // SPLITS // HK
    rows = tl.arange(0, ROWS)
    dims = tl.arange(0, D)
    ok = rows < G
    hq = hk * G + rows
    q = tl.load(q_ptr + (b * HK * G + hq[:, None]) * D + dims[None, :], mask=ok[:, None], other=0.0)
    n = tl.load(len_ptr + b)
    blocks = (n + BLOCK - 1) // BLOCK
    per = (blocks + SPLITS - 1) // SPLITS
    mi = tl.full((ROWS,), float("-inf"), tl.float32)
    li = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, D), tl.float32)
    for blk in range(s * per, tl.minimum((s + 1) * per, blocks)):
        key = blk * BLOCK + tl.arange(0, BLOCK)
        live = key < n
        pg = tl.load(tab_ptr + b * W + blk)
        off = (pg * HK + hk) * PAGE * D + (key % PAGE) * D
        k = tl.load(k_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        v = tl.load(v_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        x = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        x = tl.where(live[None, :], x, float("-inf"))
        new = tl.maximum(mi, tl.max(x, 1))
        keep = tl.exp(mi - new)
        p = tl.exp(x - new[:, None])
        li = li * keep + tl.sum(p, 1)
        acc = acc * keep[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        mi = new
    at = (b * HK * G + hq) * SPLITS + s
    tl.store(m_ptr + at, mi, mask=ok)
    tl.store(l_ptr + at, li, mask=ok)
    tl.store(acc_ptr + at[:, None] * D + dims[None, :], acc, mask=ok[:, None])


@triton.jit
def join_kernel(m_ptr, l_ptr, acc_ptr, o_ptr, lse_ptr, SPLITS, D: tl.constexpr):
    row = tl.program_id(0)
    dims = tl.arange(0, D)
    big = float("-inf")
    for s in range(SPLITS):
        big = tl.maximum(big, tl.load(m_ptr + row * SPLITS + s))
    total = 0.0
    out = tl.zeros((D,), tl.float32)
    if big > float("-inf"):
        for s in range(SPLITS):
            w = tl.exp(tl.load(m_ptr + row * SPLITS + s) - big)
            total += w * tl.load(l_ptr + row * SPLITS + s)
            out += w * tl.load(acc_ptr + (row * SPLITS + s) * D + dims)
        out = out / total
    tl.store(o_ptr + row * D + dims, out)
    tl.store(lse_ptr + row, big + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, HQ, D = Q.shape
    HK, PAGE = K.shape[1], K.shape[2]
    G = HQ // HK
    m = torch.empty(B, HQ, parts, device=Q.device)
    l = torch.empty_like(m)
    acc = torch.empty(B, HQ, parts, D, device=Q.device)
    O = torch.empty_like(Q)
    lse = torch.empty(B, HQ, device=Q.device)
    split_kernel[(B * HK * parts,)](
        Q, K, V, lengths, table, m, l, acc, HK, G, PAGE, table.shape[1], parts, D ** -0.5,
        D=D, ROWS=max(16, triton.next_power_of_2(G)), BLOCK=32)
    join_kernel[(B * HQ,)](m, l, acc, O, lse, parts, D=D)
    return O, lse


# decode, pool_order: pages as (page, heads, d), as elsewhere
@triton.jit
def split_kernel(q_ptr, k_ptr, v_ptr, len_ptr, tab_ptr, m_ptr, l_ptr, acc_ptr, HK, G, PAGE, W, SPLITS, scale,
                 D: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    s = pid % SPLITS
    hk = pid // SPLITS % HK
    b = pid // SPLITS // HK
    rows = tl.arange(0, ROWS)
    dims = tl.arange(0, D)
    ok = rows < G
    hq = hk * G + rows
    q = tl.load(q_ptr + (b * HK * G + hq[:, None]) * D + dims[None, :], mask=ok[:, None], other=0.0)
    n = tl.load(len_ptr + b)
    blocks = (n + BLOCK - 1) // BLOCK
    per = (blocks + SPLITS - 1) // SPLITS
    mi = tl.full((ROWS,), float("-inf"), tl.float32)
    li = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, D), tl.float32)
    for blk in range(s * per, tl.minimum((s + 1) * per, blocks)):
        key = blk * BLOCK + tl.arange(0, BLOCK)
        live = key < n
        pg = tl.load(tab_ptr + b * W + key // PAGE, mask=live, other=0)
        off = ((pg * PAGE + key % PAGE) * HK + hk) * D
        k = tl.load(k_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        v = tl.load(v_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        x = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        x = tl.where(live[None, :], x, float("-inf"))
        new = tl.maximum(mi, tl.max(x, 1))
        keep = tl.exp(mi - new)
        p = tl.exp(x - new[:, None])
        li = li * keep + tl.sum(p, 1)
        acc = acc * keep[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        mi = new
    at = (b * HK * G + hq) * SPLITS + s
    tl.store(m_ptr + at, mi, mask=ok)
    tl.store(l_ptr + at, li, mask=ok)
    tl.store(acc_ptr + at[:, None] * D + dims[None, :], acc, mask=ok[:, None])


@triton.jit
def join_kernel(m_ptr, l_ptr, acc_ptr, o_ptr, lse_ptr, SPLITS, D: tl.constexpr):
    row = tl.program_id(0)
    dims = tl.arange(0, D)
    big = float("-inf")
    for s in range(SPLITS):
        big = tl.maximum(big, tl.load(m_ptr + row * SPLITS + s))
    total = 0.0
    out = tl.zeros((D,), tl.float32)
    if big > float("-inf"):
        for s in range(SPLITS):
            w = tl.exp(tl.load(m_ptr + row * SPLITS + s) - big)
            total += w * tl.load(l_ptr + row * SPLITS + s)
            out += w * tl.load(acc_ptr + (row * SPLITS + s) * D + dims)
        out = out / total
    tl.store(o_ptr + row * D + dims, out)
    tl.store(lse_ptr + row, big + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, HQ, D = Q.shape
    HK, PAGE = K.shape[1], K.shape[2]
    G = HQ // HK
    m = torch.empty(B, HQ, parts, device=Q.device)
    l = torch.empty_like(m)
    acc = torch.empty(B, HQ, parts, D, device=Q.device)
    O = torch.empty_like(Q)
    lse = torch.empty(B, HQ, device=Q.device)
    split_kernel[(B * HK * parts,)](
        Q, K, V, lengths, table, m, l, acc, HK, G, PAGE, table.shape[1], parts, D ** -0.5,
        D=D, ROWS=max(16, triton.next_power_of_2(G)), BLOCK=32)
    join_kernel[(B * HQ,)](m, l, acc, O, lse, parts, D=D)
    return O, lse


# decode, heads_apart: heads of a group lie H_k apart
@triton.jit
def split_kernel(q_ptr, k_ptr, v_ptr, len_ptr, tab_ptr, m_ptr, l_ptr, acc_ptr, HK, G, PAGE, W, SPLITS, scale,
                 D: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    s = pid % SPLITS
    hk = pid // SPLITS % HK
    b = pid // SPLITS // HK
    rows = tl.arange(0, ROWS)
    dims = tl.arange(0, D)
    ok = rows < G
    hq = rows * HK + hk
    q = tl.load(q_ptr + (b * HK * G + hq[:, None]) * D + dims[None, :], mask=ok[:, None], other=0.0)
    n = tl.load(len_ptr + b)
    blocks = (n + BLOCK - 1) // BLOCK
    per = (blocks + SPLITS - 1) // SPLITS
    mi = tl.full((ROWS,), float("-inf"), tl.float32)
    li = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, D), tl.float32)
    for blk in range(s * per, tl.minimum((s + 1) * per, blocks)):
        key = blk * BLOCK + tl.arange(0, BLOCK)
        live = key < n
        pg = tl.load(tab_ptr + b * W + key // PAGE, mask=live, other=0)
        off = (pg * HK + hk) * PAGE * D + (key % PAGE) * D
        k = tl.load(k_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        v = tl.load(v_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        x = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        x = tl.where(live[None, :], x, float("-inf"))
        new = tl.maximum(mi, tl.max(x, 1))
        keep = tl.exp(mi - new)
        p = tl.exp(x - new[:, None])
        li = li * keep + tl.sum(p, 1)
        acc = acc * keep[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        mi = new
    at = (b * HK * G + hq) * SPLITS + s
    tl.store(m_ptr + at, mi, mask=ok)
    tl.store(l_ptr + at, li, mask=ok)
    tl.store(acc_ptr + at[:, None] * D + dims[None, :], acc, mask=ok[:, None])


@triton.jit
def join_kernel(m_ptr, l_ptr, acc_ptr, o_ptr, lse_ptr, SPLITS, D: tl.constexpr):
    row = tl.program_id(0)
    dims = tl.arange(0, D)
    big = float("-inf")
    for s in range(SPLITS):
        big = tl.maximum(big, tl.load(m_ptr + row * SPLITS + s))
    total = 0.0
    out = tl.zeros((D,), tl.float32)
    if big > float("-inf"):
        for s in range(SPLITS):
            w = tl.exp(tl.load(m_ptr + row * SPLITS + s) - big)
            total += w * tl.load(l_ptr + row * SPLITS + s)
            out += w * tl.load(acc_ptr + (row * SPLITS + s) * D + dims)
        out = out / total
    tl.store(o_ptr + row * D + dims, out)
    tl.store(lse_ptr + row, big + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, HQ, D = Q.shape
    HK, PAGE = K.shape[1], K.shape[2]
    G = HQ // HK
    m = torch.empty(B, HQ, parts, device=Q.device)
    l = torch.empty_like(m)
    acc = torch.empty(B, HQ, parts, D, device=Q.device)
    O = torch.empty_like(Q)
    lse = torch.empty(B, HQ, device=Q.device)
    split_kernel[(B * HK * parts,)](
        Q, K, V, lengths, table, m, l, acc, HK, G, PAGE, table.shape[1], parts, D ** -0.5,
        D=D, ROWS=max(16, triton.next_power_of_2(G)), BLOCK=32)
    join_kernel[(B * HQ,)](m, l, acc, O, lse, parts, D=D)
    return O, lse


# decode, first_queries: the place of q forgets the sequence
@triton.jit
def split_kernel(q_ptr, k_ptr, v_ptr, len_ptr, tab_ptr, m_ptr, l_ptr, acc_ptr, HK, G, PAGE, W, SPLITS, scale,
                 D: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    s = pid % SPLITS
    hk = pid // SPLITS % HK
    b = pid // SPLITS // HK
    rows = tl.arange(0, ROWS)
    dims = tl.arange(0, D)
    ok = rows < G
    hq = hk * G + rows
    q = tl.load(q_ptr + hq[:, None] * D + dims[None, :], mask=ok[:, None], other=0.0)
    n = tl.load(len_ptr + b)
    blocks = (n + BLOCK - 1) // BLOCK
    per = (blocks + SPLITS - 1) // SPLITS
    mi = tl.full((ROWS,), float("-inf"), tl.float32)
    li = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, D), tl.float32)
    for blk in range(s * per, tl.minimum((s + 1) * per, blocks)):
        key = blk * BLOCK + tl.arange(0, BLOCK)
        live = key < n
        pg = tl.load(tab_ptr + b * W + key // PAGE, mask=live, other=0)
        off = (pg * HK + hk) * PAGE * D + (key % PAGE) * D
        k = tl.load(k_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        v = tl.load(v_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        x = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        x = tl.where(live[None, :], x, float("-inf"))
        new = tl.maximum(mi, tl.max(x, 1))
        keep = tl.exp(mi - new)
        p = tl.exp(x - new[:, None])
        li = li * keep + tl.sum(p, 1)
        acc = acc * keep[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        mi = new
    at = (b * HK * G + hq) * SPLITS + s
    tl.store(m_ptr + at, mi, mask=ok)
    tl.store(l_ptr + at, li, mask=ok)
    tl.store(acc_ptr + at[:, None] * D + dims[None, :], acc, mask=ok[:, None])


@triton.jit
def join_kernel(m_ptr, l_ptr, acc_ptr, o_ptr, lse_ptr, SPLITS, D: tl.constexpr):
    row = tl.program_id(0)
    dims = tl.arange(0, D)
    big = float("-inf")
    for s in range(SPLITS):
        big = tl.maximum(big, tl.load(m_ptr + row * SPLITS + s))
    total = 0.0
    out = tl.zeros((D,), tl.float32)
    if big > float("-inf"):
        for s in range(SPLITS):
            w = tl.exp(tl.load(m_ptr + row * SPLITS + s) - big)
            total += w * tl.load(l_ptr + row * SPLITS + s)
            out += w * tl.load(acc_ptr + (row * SPLITS + s) * D + dims)
        out = out / total
    tl.store(o_ptr + row * D + dims, out)
    tl.store(lse_ptr + row, big + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, HQ, D = Q.shape
    HK, PAGE = K.shape[1], K.shape[2]
    G = HQ // HK
    m = torch.empty(B, HQ, parts, device=Q.device)
    l = torch.empty_like(m)
    acc = torch.empty(B, HQ, parts, D, device=Q.device)
    O = torch.empty_like(Q)
    lse = torch.empty(B, HQ, device=Q.device)
    split_kernel[(B * HK * parts,)](
        Q, K, V, lengths, table, m, l, acc, HK, G, PAGE, table.shape[1], parts, D ** -0.5,
        D=D, ROWS=max(16, triton.next_power_of_2(G)), BLOCK=32)
    join_kernel[(B * HQ,)](m, l, acc, O, lse, parts, D=D)
    return O, lse


# decode, split_down: tiles that are left over are lost
@triton.jit
def split_kernel(q_ptr, k_ptr, v_ptr, len_ptr, tab_ptr, m_ptr, l_ptr, acc_ptr, HK, G, PAGE, W, SPLITS, scale,
                 D: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    s = pid % SPLITS
    hk = pid // SPLITS % HK
    b = pid // SPLITS // HK
    rows = tl.arange(0, ROWS)
    dims = tl.arange(0, D)
    ok = rows < G
    hq = hk * G + rows
    q = tl.load(q_ptr + (b * HK * G + hq[:, None]) * D + dims[None, :], mask=ok[:, None], other=0.0)
    n = tl.load(len_ptr + b)
    blocks = (n + BLOCK - 1) // BLOCK
    per = blocks // SPLITS
    mi = tl.full((ROWS,), float("-inf"), tl.float32)
    li = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, D), tl.float32)
    for blk in range(s * per, (s + 1) * per):
        key = blk * BLOCK + tl.arange(0, BLOCK)
        live = key < n
        pg = tl.load(tab_ptr + b * W + key // PAGE, mask=live, other=0)
        off = (pg * HK + hk) * PAGE * D + (key % PAGE) * D
        k = tl.load(k_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        v = tl.load(v_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        x = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        x = tl.where(live[None, :], x, float("-inf"))
        new = tl.maximum(mi, tl.max(x, 1))
        keep = tl.exp(mi - new)
        p = tl.exp(x - new[:, None])
        li = li * keep + tl.sum(p, 1)
        acc = acc * keep[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        mi = new
    at = (b * HK * G + hq) * SPLITS + s
    tl.store(m_ptr + at, mi, mask=ok)
    tl.store(l_ptr + at, li, mask=ok)
    tl.store(acc_ptr + at[:, None] * D + dims[None, :], acc, mask=ok[:, None])


@triton.jit
def join_kernel(m_ptr, l_ptr, acc_ptr, o_ptr, lse_ptr, SPLITS, D: tl.constexpr):
    row = tl.program_id(0)
    dims = tl.arange(0, D)
    big = float("-inf")
    for s in range(SPLITS):
        big = tl.maximum(big, tl.load(m_ptr + row * SPLITS + s))
    total = 0.0
    out = tl.zeros((D,), tl.float32)
    if big > float("-inf"):
        for s in range(SPLITS):
            w = tl.exp(tl.load(m_ptr + row * SPLITS + s) - big)
            total += w * tl.load(l_ptr + row * SPLITS + s)
            out += w * tl.load(acc_ptr + (row * SPLITS + s) * D + dims)
        out = out / total
    tl.store(o_ptr + row * D + dims, out)
    tl.store(lse_ptr + row, big + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, HQ, D = Q.shape
    HK, PAGE = K.shape[1], K.shape[2]
    G = HQ // HK
    m = torch.empty(B, HQ, parts, device=Q.device)
    l = torch.empty_like(m)
    acc = torch.empty(B, HQ, parts, D, device=Q.device)
    O = torch.empty_like(Q)
    lse = torch.empty(B, HQ, device=Q.device)
    split_kernel[(B * HK * parts,)](
        Q, K, V, lengths, table, m, l, acc, HK, G, PAGE, table.shape[1], parts, D ** -0.5,
        D=D, ROWS=max(16, triton.next_power_of_2(G)), BLOCK=32)
    join_kernel[(B * HQ,)](m, l, acc, O, lse, parts, D=D)
    return O, lse


# decode, nothing_seen: no guard in the merge where nothing is seen
@triton.jit
def split_kernel(q_ptr, k_ptr, v_ptr, len_ptr, tab_ptr, m_ptr, l_ptr, acc_ptr, HK, G, PAGE, W, SPLITS, scale,
                 D: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    s = pid % SPLITS
    hk = pid // SPLITS % HK
    b = pid // SPLITS // HK
    rows = tl.arange(0, ROWS)
    dims = tl.arange(0, D)
    ok = rows < G
    hq = hk * G + rows
    q = tl.load(q_ptr + (b * HK * G + hq[:, None]) * D + dims[None, :], mask=ok[:, None], other=0.0)
    n = tl.load(len_ptr + b)
    blocks = (n + BLOCK - 1) // BLOCK
    per = (blocks + SPLITS - 1) // SPLITS
    mi = tl.full((ROWS,), float("-inf"), tl.float32)
    li = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, D), tl.float32)
    for blk in range(s * per, tl.minimum((s + 1) * per, blocks)):
        key = blk * BLOCK + tl.arange(0, BLOCK)
        live = key < n
        pg = tl.load(tab_ptr + b * W + key // PAGE, mask=live, other=0)
        off = (pg * HK + hk) * PAGE * D + (key % PAGE) * D
        k = tl.load(k_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        v = tl.load(v_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        x = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        x = tl.where(live[None, :], x, float("-inf"))
        new = tl.maximum(mi, tl.max(x, 1))
        keep = tl.exp(mi - new)
        p = tl.exp(x - new[:, None])
        li = li * keep + tl.sum(p, 1)
        acc = acc * keep[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        mi = new
    at = (b * HK * G + hq) * SPLITS + s
    tl.store(m_ptr + at, mi, mask=ok)
    tl.store(l_ptr + at, li, mask=ok)
    tl.store(acc_ptr + at[:, None] * D + dims[None, :], acc, mask=ok[:, None])


@triton.jit
def join_kernel(m_ptr, l_ptr, acc_ptr, o_ptr, lse_ptr, SPLITS, D: tl.constexpr):
    row = tl.program_id(0)
    dims = tl.arange(0, D)
    big = float("-inf")
    for s in range(SPLITS):
        big = tl.maximum(big, tl.load(m_ptr + row * SPLITS + s))
    total = 0.0
    out = tl.zeros((D,), tl.float32)
    if True:
        for s in range(SPLITS):
            w = tl.exp(tl.load(m_ptr + row * SPLITS + s) - big)
            total += w * tl.load(l_ptr + row * SPLITS + s)
            out += w * tl.load(acc_ptr + (row * SPLITS + s) * D + dims)
        out = out / total
    tl.store(o_ptr + row * D + dims, out)
    tl.store(lse_ptr + row, big + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, HQ, D = Q.shape
    HK, PAGE = K.shape[1], K.shape[2]
    G = HQ // HK
    m = torch.empty(B, HQ, parts, device=Q.device)
    l = torch.empty_like(m)
    acc = torch.empty(B, HQ, parts, D, device=Q.device)
    O = torch.empty_like(Q)
    lse = torch.empty(B, HQ, device=Q.device)
    split_kernel[(B * HK * parts,)](
        Q, K, V, lengths, table, m, l, acc, HK, G, PAGE, table.shape[1], parts, D ** -0.5,
        D=D, ROWS=max(16, triton.next_power_of_2(G)), BLOCK=32)
    join_kernel[(B * HQ,)](m, l, acc, O, lse, parts, D=D)
    return O, lse


# decode, acc_in_16_bits: States in the dtype of Q
@triton.jit
def split_kernel(q_ptr, k_ptr, v_ptr, len_ptr, tab_ptr, m_ptr, l_ptr, acc_ptr, HK, G, PAGE, W, SPLITS, scale,
                 D: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    s = pid % SPLITS
    hk = pid // SPLITS % HK
    b = pid // SPLITS // HK
    rows = tl.arange(0, ROWS)
    dims = tl.arange(0, D)
    ok = rows < G
    hq = hk * G + rows
    q = tl.load(q_ptr + (b * HK * G + hq[:, None]) * D + dims[None, :], mask=ok[:, None], other=0.0)
    n = tl.load(len_ptr + b)
    blocks = (n + BLOCK - 1) // BLOCK
    per = (blocks + SPLITS - 1) // SPLITS
    mi = tl.full((ROWS,), float("-inf"), tl.float32)
    li = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, D), tl.float32)
    for blk in range(s * per, tl.minimum((s + 1) * per, blocks)):
        key = blk * BLOCK + tl.arange(0, BLOCK)
        live = key < n
        pg = tl.load(tab_ptr + b * W + key // PAGE, mask=live, other=0)
        off = (pg * HK + hk) * PAGE * D + (key % PAGE) * D
        k = tl.load(k_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        v = tl.load(v_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        x = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        x = tl.where(live[None, :], x, float("-inf"))
        new = tl.maximum(mi, tl.max(x, 1))
        keep = tl.exp(mi - new)
        p = tl.exp(x - new[:, None])
        li = li * keep + tl.sum(p, 1)
        acc = acc * keep[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        mi = new
    at = (b * HK * G + hq) * SPLITS + s
    tl.store(m_ptr + at, mi, mask=ok)
    tl.store(l_ptr + at, li, mask=ok)
    tl.store(acc_ptr + at[:, None] * D + dims[None, :], acc, mask=ok[:, None])


@triton.jit
def join_kernel(m_ptr, l_ptr, acc_ptr, o_ptr, lse_ptr, SPLITS, D: tl.constexpr):
    row = tl.program_id(0)
    dims = tl.arange(0, D)
    big = float("-inf")
    for s in range(SPLITS):
        big = tl.maximum(big, tl.load(m_ptr + row * SPLITS + s))
    total = 0.0
    out = tl.zeros((D,), tl.float32)
    if big > float("-inf"):
        for s in range(SPLITS):
            w = tl.exp(tl.load(m_ptr + row * SPLITS + s) - big)
            total += w * tl.load(l_ptr + row * SPLITS + s)
            out += w * tl.load(acc_ptr + (row * SPLITS + s) * D + dims)
        out = out / total
    tl.store(o_ptr + row * D + dims, out)
    tl.store(lse_ptr + row, big + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, HQ, D = Q.shape
    HK, PAGE = K.shape[1], K.shape[2]
    G = HQ // HK
    m = torch.empty(B, HQ, parts, device=Q.device)
    l = torch.empty_like(m)
    acc = Q.new_empty(B, HQ, parts, D)
    O = torch.empty_like(Q)
    lse = torch.empty(B, HQ, device=Q.device)
    split_kernel[(B * HK * parts,)](
        Q, K, V, lengths, table, m, l, acc, HK, G, PAGE, table.shape[1], parts, D ** -0.5,
        D=D, ROWS=max(16, triton.next_power_of_2(G)), BLOCK=32)
    join_kernel[(B * HQ,)](m, l, acc, O, lse, parts, D=D)
    return O, lse


# decode, lse_of_m: lse without the part of l
@triton.jit
def split_kernel(q_ptr, k_ptr, v_ptr, len_ptr, tab_ptr, m_ptr, l_ptr, acc_ptr, HK, G, PAGE, W, SPLITS, scale,
                 D: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    s = pid % SPLITS
    hk = pid // SPLITS % HK
    b = pid // SPLITS // HK
    rows = tl.arange(0, ROWS)
    dims = tl.arange(0, D)
    ok = rows < G
    hq = hk * G + rows
    q = tl.load(q_ptr + (b * HK * G + hq[:, None]) * D + dims[None, :], mask=ok[:, None], other=0.0)
    n = tl.load(len_ptr + b)
    blocks = (n + BLOCK - 1) // BLOCK
    per = (blocks + SPLITS - 1) // SPLITS
    mi = tl.full((ROWS,), float("-inf"), tl.float32)
    li = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, D), tl.float32)
    for blk in range(s * per, tl.minimum((s + 1) * per, blocks)):
        key = blk * BLOCK + tl.arange(0, BLOCK)
        live = key < n
        pg = tl.load(tab_ptr + b * W + key // PAGE, mask=live, other=0)
        off = (pg * HK + hk) * PAGE * D + (key % PAGE) * D
        k = tl.load(k_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        v = tl.load(v_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        x = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        x = tl.where(live[None, :], x, float("-inf"))
        new = tl.maximum(mi, tl.max(x, 1))
        keep = tl.exp(mi - new)
        p = tl.exp(x - new[:, None])
        li = li * keep + tl.sum(p, 1)
        acc = acc * keep[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        mi = new
    at = (b * HK * G + hq) * SPLITS + s
    tl.store(m_ptr + at, mi, mask=ok)
    tl.store(l_ptr + at, li, mask=ok)
    tl.store(acc_ptr + at[:, None] * D + dims[None, :], acc, mask=ok[:, None])


@triton.jit
def join_kernel(m_ptr, l_ptr, acc_ptr, o_ptr, lse_ptr, SPLITS, D: tl.constexpr):
    row = tl.program_id(0)
    dims = tl.arange(0, D)
    big = float("-inf")
    for s in range(SPLITS):
        big = tl.maximum(big, tl.load(m_ptr + row * SPLITS + s))
    total = 0.0
    out = tl.zeros((D,), tl.float32)
    if big > float("-inf"):
        for s in range(SPLITS):
            w = tl.exp(tl.load(m_ptr + row * SPLITS + s) - big)
            total += w * tl.load(l_ptr + row * SPLITS + s)
            out += w * tl.load(acc_ptr + (row * SPLITS + s) * D + dims)
        out = out / total
    tl.store(o_ptr + row * D + dims, out)
    tl.store(lse_ptr + row, big)


def my_decode(Q, K, V, lengths, table, parts):
    B, HQ, D = Q.shape
    HK, PAGE = K.shape[1], K.shape[2]
    G = HQ // HK
    m = torch.empty(B, HQ, parts, device=Q.device)
    l = torch.empty_like(m)
    acc = torch.empty(B, HQ, parts, D, device=Q.device)
    O = torch.empty_like(Q)
    lse = torch.empty(B, HQ, device=Q.device)
    split_kernel[(B * HK * parts,)](
        Q, K, V, lengths, table, m, l, acc, HK, G, PAGE, table.shape[1], parts, D ** -0.5,
        D=D, ROWS=max(16, triton.next_power_of_2(G)), BLOCK=32)
    join_kernel[(B * HQ,)](m, l, acc, O, lse, parts, D=D)
    return O, lse


# decode, looks: the longest sequence is asked for, to start no program for nothing
@triton.jit
def split_kernel(q_ptr, k_ptr, v_ptr, len_ptr, tab_ptr, m_ptr, l_ptr, acc_ptr, HK, G, PAGE, W, SPLITS, scale,
                 D: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    s = pid % SPLITS
    hk = pid // SPLITS % HK
    b = pid // SPLITS // HK
    rows = tl.arange(0, ROWS)
    dims = tl.arange(0, D)
    ok = rows < G
    hq = hk * G + rows
    q = tl.load(q_ptr + (b * HK * G + hq[:, None]) * D + dims[None, :], mask=ok[:, None], other=0.0)
    n = tl.load(len_ptr + b)
    blocks = (n + BLOCK - 1) // BLOCK
    per = (blocks + SPLITS - 1) // SPLITS
    mi = tl.full((ROWS,), float("-inf"), tl.float32)
    li = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, D), tl.float32)
    for blk in range(s * per, tl.minimum((s + 1) * per, blocks)):
        key = blk * BLOCK + tl.arange(0, BLOCK)
        live = key < n
        pg = tl.load(tab_ptr + b * W + key // PAGE, mask=live, other=0)
        off = (pg * HK + hk) * PAGE * D + (key % PAGE) * D
        k = tl.load(k_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        v = tl.load(v_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        x = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        x = tl.where(live[None, :], x, float("-inf"))
        new = tl.maximum(mi, tl.max(x, 1))
        keep = tl.exp(mi - new)
        p = tl.exp(x - new[:, None])
        li = li * keep + tl.sum(p, 1)
        acc = acc * keep[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        mi = new
    at = (b * HK * G + hq) * SPLITS + s
    tl.store(m_ptr + at, mi, mask=ok)
    tl.store(l_ptr + at, li, mask=ok)
    tl.store(acc_ptr + at[:, None] * D + dims[None, :], acc, mask=ok[:, None])


@triton.jit
def join_kernel(m_ptr, l_ptr, acc_ptr, o_ptr, lse_ptr, SPLITS, D: tl.constexpr):
    row = tl.program_id(0)
    dims = tl.arange(0, D)
    big = float("-inf")
    for s in range(SPLITS):
        big = tl.maximum(big, tl.load(m_ptr + row * SPLITS + s))
    total = 0.0
    out = tl.zeros((D,), tl.float32)
    if big > float("-inf"):
        for s in range(SPLITS):
            w = tl.exp(tl.load(m_ptr + row * SPLITS + s) - big)
            total += w * tl.load(l_ptr + row * SPLITS + s)
            out += w * tl.load(acc_ptr + (row * SPLITS + s) * D + dims)
        out = out / total
    tl.store(o_ptr + row * D + dims, out)
    tl.store(lse_ptr + row, big + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, HQ, D = Q.shape
    HK, PAGE = K.shape[1], K.shape[2]
    G = HQ // HK
    parts = min(parts, -(-int(lengths.max()) // 32)) or 1
    m = torch.empty(B, HQ, parts, device=Q.device)
    l = torch.empty_like(m)
    acc = torch.empty(B, HQ, parts, D, device=Q.device)
    O = torch.empty_like(Q)
    lse = torch.empty(B, HQ, device=Q.device)
    split_kernel[(B * HK * parts,)](
        Q, K, V, lengths, table, m, l, acc, HK, G, PAGE, table.shape[1], parts, D ** -0.5,
        D=D, ROWS=max(16, triton.next_power_of_2(G)), BLOCK=32)
    join_kernel[(B * HQ,)](m, l, acc, O, lse, parts, D=D)
    return O, lse


# decode, table_of_first: one table for all sequences
@triton.jit
def split_kernel(q_ptr, k_ptr, v_ptr, len_ptr, tab_ptr, m_ptr, l_ptr, acc_ptr, HK, G, PAGE, W, SPLITS, scale,
                 D: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    s = pid % SPLITS
    hk = pid // SPLITS % HK
    b = pid // SPLITS // HK
    rows = tl.arange(0, ROWS)
    dims = tl.arange(0, D)
    ok = rows < G
    hq = hk * G + rows
    q = tl.load(q_ptr + (b * HK * G + hq[:, None]) * D + dims[None, :], mask=ok[:, None], other=0.0)
    n = tl.load(len_ptr + b)
    blocks = (n + BLOCK - 1) // BLOCK
    per = (blocks + SPLITS - 1) // SPLITS
    mi = tl.full((ROWS,), float("-inf"), tl.float32)
    li = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, D), tl.float32)
    for blk in range(s * per, tl.minimum((s + 1) * per, blocks)):
        key = blk * BLOCK + tl.arange(0, BLOCK)
        live = key < n
        pg = tl.load(tab_ptr + key // PAGE, mask=live, other=0)
        off = (pg * HK + hk) * PAGE * D + (key % PAGE) * D
        k = tl.load(k_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        v = tl.load(v_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        x = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        x = tl.where(live[None, :], x, float("-inf"))
        new = tl.maximum(mi, tl.max(x, 1))
        keep = tl.exp(mi - new)
        p = tl.exp(x - new[:, None])
        li = li * keep + tl.sum(p, 1)
        acc = acc * keep[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        mi = new
    at = (b * HK * G + hq) * SPLITS + s
    tl.store(m_ptr + at, mi, mask=ok)
    tl.store(l_ptr + at, li, mask=ok)
    tl.store(acc_ptr + at[:, None] * D + dims[None, :], acc, mask=ok[:, None])


@triton.jit
def join_kernel(m_ptr, l_ptr, acc_ptr, o_ptr, lse_ptr, SPLITS, D: tl.constexpr):
    row = tl.program_id(0)
    dims = tl.arange(0, D)
    big = float("-inf")
    for s in range(SPLITS):
        big = tl.maximum(big, tl.load(m_ptr + row * SPLITS + s))
    total = 0.0
    out = tl.zeros((D,), tl.float32)
    if big > float("-inf"):
        for s in range(SPLITS):
            w = tl.exp(tl.load(m_ptr + row * SPLITS + s) - big)
            total += w * tl.load(l_ptr + row * SPLITS + s)
            out += w * tl.load(acc_ptr + (row * SPLITS + s) * D + dims)
        out = out / total
    tl.store(o_ptr + row * D + dims, out)
    tl.store(lse_ptr + row, big + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, HQ, D = Q.shape
    HK, PAGE = K.shape[1], K.shape[2]
    G = HQ // HK
    m = torch.empty(B, HQ, parts, device=Q.device)
    l = torch.empty_like(m)
    acc = torch.empty(B, HQ, parts, D, device=Q.device)
    O = torch.empty_like(Q)
    lse = torch.empty(B, HQ, device=Q.device)
    split_kernel[(B * HK * parts,)](
        Q, K, V, lengths, table, m, l, acc, HK, G, PAGE, table.shape[1], parts, D ** -0.5,
        D=D, ROWS=max(16, triton.next_power_of_2(G)), BLOCK=32)
    join_kernel[(B * HQ,)](m, l, acc, O, lse, parts, D=D)
    return O, lse


# decode, no_end: parts of keys without an end of their own
@triton.jit
def part(Q, K, V, lens, table, Opart, Lpart, Hk, page, most, parts, scale,
         group: tl.constexpr, R: tl.constexpr, D: tl.constexpr, C: tl.constexpr):
    k_part, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    N = tl.load(lens + b)
    first = N * k_part // parts
    last = N * (k_part + 1) // parts
    r = tl.arange(0, R)
    d = tl.arange(0, D)
    row = b * Hk * group + h * group + r
    q = tl.load(Q + row[:, None] * D + d, mask=(r < group)[:, None], other=0.0)
    m = tl.full([R], -float("inf"), tl.float32)
    l = tl.zeros([R], tl.float32)
    acc = tl.zeros([R, D], tl.float32)
    for start in range(first, last, C):
        c = start + tl.arange(0, C)
        mine = c < N
        number = tl.load(table + b * most + c // page, mask=mine, other=0)
        place = number * Hk * page * D + h * page * D + c % page * D
        k = tl.load(K + place[None, :] + d[:, None], mask=mine[None, :], other=0.0)
        v = tl.load(V + place[:, None] + d[None, :], mask=mine[:, None], other=0.0)
        s = tl.dot(q, k, input_precision="ieee") * (scale * 1.4426950408889634)
        s = tl.where(mine[None, :], s, -float("inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        a = tl.exp2(m - m_new)
        p = tl.exp2(s - m_new[:, None])
        l = l * a + tl.sum(p, axis=1)
        acc = acc * a[:, None]
        acc += tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m = m_new
    safe = tl.where(l == 0, 1.0, l)
    tl.store(Opart + (row * parts + k_part)[:, None] * D + d, acc / safe[:, None], mask=(r < group)[:, None])
    tl.store(Lpart + row * parts + k_part, m * 0.6931471805599453 + tl.log(safe), mask=r < group)


@triton.jit
def merge(Opart, Lpart, O, L, parts, P: tl.constexpr, D: tl.constexpr):
    row, d, p = tl.program_id(0), tl.arange(0, D), tl.arange(0, P)
    lse = tl.load(Lpart + row * parts + p, mask=p < parts, other=-float("inf"))
    o = tl.load(Opart + (row * parts + p)[:, None] * D + d[None, :], mask=(p < parts)[:, None], other=0.0)
    top = tl.max(lse, axis=0)
    top = tl.where(top == -float("inf"), 0.0, top)
    w = tl.exp(lse - top)
    total = tl.sum(w, axis=0)
    tl.store(O + row * D + d, tl.sum(w[:, None] * o, axis=0) / tl.where(total == 0, 1.0, total))
    tl.store(L + row, top + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, H, D = Q.shape
    _, Hk, page, _ = K.shape
    group = H // Hk
    Opart = torch.zeros(B, H, parts, D, dtype=torch.float32, device=Q.device)
    Lpart = torch.zeros(B, H, parts, dtype=torch.float32, device=Q.device)
    O, L = torch.zeros_like(Q), torch.zeros(B, H, device=Q.device)
    R = max(triton.next_power_of_2(group), 16)
    part[(parts, Hk, B)](Q, K, V, lengths, table, Opart, Lpart, Hk, page, table.size(1), parts, D**-0.5, group, R, D, 16)
    merge[(B * H,)](Opart, Lpart, O, L, parts, P=triton.next_power_of_2(parts), D=D)
    return O, L


# decode, plain_mean: outputs averaged
@triton.jit
def part(Q, K, V, lens, table, Opart, Lpart, Hk, page, most, parts, scale,
         group: tl.constexpr, R: tl.constexpr, D: tl.constexpr, C: tl.constexpr):
    k_part, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    N = tl.load(lens + b)
    first = N * k_part // parts
    last = N * (k_part + 1) // parts
    r = tl.arange(0, R)
    d = tl.arange(0, D)
    row = b * Hk * group + h * group + r
    q = tl.load(Q + row[:, None] * D + d, mask=(r < group)[:, None], other=0.0)
    m = tl.full([R], -float("inf"), tl.float32)
    l = tl.zeros([R], tl.float32)
    acc = tl.zeros([R, D], tl.float32)
    for start in range(first, last, C):
        c = start + tl.arange(0, C)
        mine = c < last
        number = tl.load(table + b * most + c // page, mask=mine, other=0)
        place = number * Hk * page * D + h * page * D + c % page * D
        k = tl.load(K + place[None, :] + d[:, None], mask=mine[None, :], other=0.0)
        v = tl.load(V + place[:, None] + d[None, :], mask=mine[:, None], other=0.0)
        s = tl.dot(q, k, input_precision="ieee") * (scale * 1.4426950408889634)
        s = tl.where(mine[None, :], s, -float("inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        a = tl.exp2(m - m_new)
        p = tl.exp2(s - m_new[:, None])
        l = l * a + tl.sum(p, axis=1)
        acc = acc * a[:, None]
        acc += tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m = m_new
    safe = tl.where(l == 0, 1.0, l)
    tl.store(Opart + (row * parts + k_part)[:, None] * D + d, acc / safe[:, None], mask=(r < group)[:, None])
    tl.store(Lpart + row * parts + k_part, m * 0.6931471805599453 + tl.log(safe), mask=r < group)


@triton.jit
def merge(Opart, Lpart, O, L, parts, P: tl.constexpr, D: tl.constexpr):
    row, d, p = tl.program_id(0), tl.arange(0, D), tl.arange(0, P)
    lse = tl.load(Lpart + row * parts + p, mask=p < parts, other=-float("inf"))
    o = tl.load(Opart + (row * parts + p)[:, None] * D + d[None, :], mask=(p < parts)[:, None], other=0.0)
    top = tl.max(lse, axis=0)
    top = tl.where(top == -float("inf"), 0.0, top)
    w = tl.exp(lse - top)
    total = tl.sum(w, axis=0)
    tl.store(O + row * D + d, tl.sum(o, axis=0) / parts)
    tl.store(L + row, top + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, H, D = Q.shape
    _, Hk, page, _ = K.shape
    group = H // Hk
    Opart = torch.zeros(B, H, parts, D, dtype=torch.float32, device=Q.device)
    Lpart = torch.zeros(B, H, parts, dtype=torch.float32, device=Q.device)
    O, L = torch.zeros_like(Q), torch.zeros(B, H, device=Q.device)
    R = max(triton.next_power_of_2(group), 16)
    part[(parts, Hk, B)](Q, K, V, lengths, table, Opart, Lpart, Hk, page, table.size(1), parts, D**-0.5, group, R, D, 16)
    merge[(B * H,)](Opart, Lpart, O, L, parts, P=triton.next_power_of_2(parts), D=D)
    return O, L


# decode, two_bases: the lse of a part in base 2
@triton.jit
def part(Q, K, V, lens, table, Opart, Lpart, Hk, page, most, parts, scale,
         group: tl.constexpr, R: tl.constexpr, D: tl.constexpr, C: tl.constexpr):
    k_part, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    N = tl.load(lens + b)
    first = N * k_part // parts
    last = N * (k_part + 1) // parts
    r = tl.arange(0, R)
    d = tl.arange(0, D)
    row = b * Hk * group + h * group + r
    q = tl.load(Q + row[:, None] * D + d, mask=(r < group)[:, None], other=0.0)
    m = tl.full([R], -float("inf"), tl.float32)
    l = tl.zeros([R], tl.float32)
    acc = tl.zeros([R, D], tl.float32)
    for start in range(first, last, C):
        c = start + tl.arange(0, C)
        mine = c < last
        number = tl.load(table + b * most + c // page, mask=mine, other=0)
        place = number * Hk * page * D + h * page * D + c % page * D
        k = tl.load(K + place[None, :] + d[:, None], mask=mine[None, :], other=0.0)
        v = tl.load(V + place[:, None] + d[None, :], mask=mine[:, None], other=0.0)
        s = tl.dot(q, k, input_precision="ieee") * (scale * 1.4426950408889634)
        s = tl.where(mine[None, :], s, -float("inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        a = tl.exp2(m - m_new)
        p = tl.exp2(s - m_new[:, None])
        l = l * a + tl.sum(p, axis=1)
        acc = acc * a[:, None]
        acc += tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m = m_new
    safe = tl.where(l == 0, 1.0, l)
    tl.store(Opart + (row * parts + k_part)[:, None] * D + d, acc / safe[:, None], mask=(r < group)[:, None])
    tl.store(Lpart + row * parts + k_part, m + tl.log2(safe), mask=r < group)


@triton.jit
def merge(Opart, Lpart, O, L, parts, P: tl.constexpr, D: tl.constexpr):
    row, d, p = tl.program_id(0), tl.arange(0, D), tl.arange(0, P)
    lse = tl.load(Lpart + row * parts + p, mask=p < parts, other=-float("inf"))
    o = tl.load(Opart + (row * parts + p)[:, None] * D + d[None, :], mask=(p < parts)[:, None], other=0.0)
    top = tl.max(lse, axis=0)
    top = tl.where(top == -float("inf"), 0.0, top)
    w = tl.exp(lse - top)
    total = tl.sum(w, axis=0)
    tl.store(O + row * D + d, tl.sum(w[:, None] * o, axis=0) / tl.where(total == 0, 1.0, total))
    tl.store(L + row, top + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, H, D = Q.shape
    _, Hk, page, _ = K.shape
    group = H // Hk
    Opart = torch.zeros(B, H, parts, D, dtype=torch.float32, device=Q.device)
    Lpart = torch.zeros(B, H, parts, dtype=torch.float32, device=Q.device)
    O, L = torch.zeros_like(Q), torch.zeros(B, H, device=Q.device)
    R = max(triton.next_power_of_2(group), 16)
    part[(parts, Hk, B)](Q, K, V, lengths, table, Opart, Lpart, Hk, page, table.size(1), parts, D**-0.5, group, R, D, 16)
    merge[(B * H,)](Opart, Lpart, O, L, parts, P=triton.next_power_of_2(parts), D=D)
    return O, L


# decode, outside: States past the last part are not masked
@triton.jit
def part(Q, K, V, lens, table, Opart, Lpart, Hk, page, most, parts, scale,
         group: tl.constexpr, R: tl.constexpr, D: tl.constexpr, C: tl.constexpr):
    k_part, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    N = tl.load(lens + b)
    first = N * k_part // parts
    last = N * (k_part + 1) // parts
    r = tl.arange(0, R)
    d = tl.arange(0, D)
    row = b * Hk * group + h * group + r
    q = tl.load(Q + row[:, None] * D + d, mask=(r < group)[:, None], other=0.0)
    m = tl.full([R], -float("inf"), tl.float32)
    l = tl.zeros([R], tl.float32)
    acc = tl.zeros([R, D], tl.float32)
    for start in range(first, last, C):
        c = start + tl.arange(0, C)
        mine = c < last
        number = tl.load(table + b * most + c // page, mask=mine, other=0)
        place = number * Hk * page * D + h * page * D + c % page * D
        k = tl.load(K + place[None, :] + d[:, None], mask=mine[None, :], other=0.0)
        v = tl.load(V + place[:, None] + d[None, :], mask=mine[:, None], other=0.0)
        s = tl.dot(q, k, input_precision="ieee") * (scale * 1.4426950408889634)
        s = tl.where(mine[None, :], s, -float("inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        a = tl.exp2(m - m_new)
        p = tl.exp2(s - m_new[:, None])
        l = l * a + tl.sum(p, axis=1)
        acc = acc * a[:, None]
        acc += tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m = m_new
    safe = tl.where(l == 0, 1.0, l)
    tl.store(Opart + (row * parts + k_part)[:, None] * D + d, acc / safe[:, None], mask=(r < group)[:, None])
    tl.store(Lpart + row * parts + k_part, m * 0.6931471805599453 + tl.log(safe), mask=r < group)


@triton.jit
def merge(Opart, Lpart, O, L, parts, P: tl.constexpr, D: tl.constexpr):
    row, d, p = tl.program_id(0), tl.arange(0, D), tl.arange(0, P)
    lse = tl.load(Lpart + row * parts + p)
    o = tl.load(Opart + (row * parts + p)[:, None] * D + d[None, :])
    top = tl.max(lse, axis=0)
    top = tl.where(top == -float("inf"), 0.0, top)
    w = tl.exp(lse - top)
    total = tl.sum(w, axis=0)
    tl.store(O + row * D + d, tl.sum(w[:, None] * o, axis=0) / tl.where(total == 0, 1.0, total))
    tl.store(L + row, top + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, H, D = Q.shape
    _, Hk, page, _ = K.shape
    group = H // Hk
    Opart = torch.zeros(B, H, parts, D, dtype=torch.float32, device=Q.device)
    Lpart = torch.zeros(B, H, parts, dtype=torch.float32, device=Q.device)
    O, L = torch.zeros_like(Q), torch.zeros(B, H, device=Q.device)
    R = max(triton.next_power_of_2(group), 16)
    part[(parts, Hk, B)](Q, K, V, lengths, table, Opart, Lpart, Hk, page, table.size(1), parts, D**-0.5, group, R, D, 16)
    merge[(B * H,)](Opart, Lpart, O, L, parts, P=triton.next_power_of_2(parts), D=D)
    return O, L


# decode, tail_counted: scores past the length are zero
@triton.jit
def part(Q, K, V, lens, table, Opart, Lpart, Hk, page, most, parts, scale,
         group: tl.constexpr, R: tl.constexpr, D: tl.constexpr, C: tl.constexpr):
    k_part, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    N = tl.load(lens + b)
    first = N * k_part // parts
    last = N * (k_part + 1) // parts
    r = tl.arange(0, R)
    d = tl.arange(0, D)
    row = b * Hk * group + h * group + r
    q = tl.load(Q + row[:, None] * D + d, mask=(r < group)[:, None], other=0.0)
    m = tl.full([R], -float("inf"), tl.float32)
    l = tl.zeros([R], tl.float32)
    acc = tl.zeros([R, D], tl.float32)
    for start in range(first, last, C):
        c = start + tl.arange(0, C)
        mine = c < last
        number = tl.load(table + b * most + c // page, mask=mine, other=0)
        place = number * Hk * page * D + h * page * D + c % page * D
        k = tl.load(K + place[None, :] + d[:, None], mask=mine[None, :], other=0.0)
        v = tl.load(V + place[:, None] + d[None, :], mask=mine[:, None], other=0.0)
        s = tl.dot(q, k, input_precision="ieee") * (scale * 1.4426950408889634)
        m_new = tl.maximum(m, tl.max(s, axis=1))
        a = tl.exp2(m - m_new)
        p = tl.exp2(s - m_new[:, None])
        l = l * a + tl.sum(p, axis=1)
        acc = acc * a[:, None]
        acc += tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m = m_new
    safe = tl.where(l == 0, 1.0, l)
    tl.store(Opart + (row * parts + k_part)[:, None] * D + d, acc / safe[:, None], mask=(r < group)[:, None])
    tl.store(Lpart + row * parts + k_part, m * 0.6931471805599453 + tl.log(safe), mask=r < group)


@triton.jit
def merge(Opart, Lpart, O, L, parts, P: tl.constexpr, D: tl.constexpr):
    row, d, p = tl.program_id(0), tl.arange(0, D), tl.arange(0, P)
    lse = tl.load(Lpart + row * parts + p, mask=p < parts, other=-float("inf"))
    o = tl.load(Opart + (row * parts + p)[:, None] * D + d[None, :], mask=(p < parts)[:, None], other=0.0)
    top = tl.max(lse, axis=0)
    top = tl.where(top == -float("inf"), 0.0, top)
    w = tl.exp(lse - top)
    total = tl.sum(w, axis=0)
    tl.store(O + row * D + d, tl.sum(w[:, None] * o, axis=0) / tl.where(total == 0, 1.0, total))
    tl.store(L + row, top + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, H, D = Q.shape
    _, Hk, page, _ = K.shape
    group = H // Hk
    Opart = torch.zeros(B, H, parts, D, dtype=torch.float32, device=Q.device)
    Lpart = torch.zeros(B, H, parts, dtype=torch.float32, device=Q.device)
    O, L = torch.zeros_like(Q), torch.zeros(B, H, device=Q.device)
    R = max(triton.next_power_of_2(group), 16)
    part[(parts, Hk, B)](Q, K, V, lengths, table, Opart, Lpart, Hk, page, table.size(1), parts, D**-0.5, group, R, D, 16)
    merge[(B * H,)](Opart, Lpart, O, L, parts, P=triton.next_power_of_2(parts), D=D)
    return O, L


# decode, V_not_masked: values are not masked
@triton.jit
def part(Q, K, V, lens, table, Opart, Lpart, Hk, page, most, parts, scale,
         group: tl.constexpr, R: tl.constexpr, D: tl.constexpr, C: tl.constexpr):
    k_part, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    N = tl.load(lens + b)
    first = N * k_part // parts
    last = N * (k_part + 1) // parts
    r = tl.arange(0, R)
    d = tl.arange(0, D)
    row = b * Hk * group + h * group + r
    q = tl.load(Q + row[:, None] * D + d, mask=(r < group)[:, None], other=0.0)
    m = tl.full([R], -float("inf"), tl.float32)
    l = tl.zeros([R], tl.float32)
    acc = tl.zeros([R, D], tl.float32)
    for start in range(first, last, C):
        c = start + tl.arange(0, C)
        mine = c < last
        number = tl.load(table + b * most + c // page, mask=mine, other=0)
        place = number * Hk * page * D + h * page * D + c % page * D
        k = tl.load(K + place[None, :] + d[:, None], mask=mine[None, :], other=0.0)
        v = tl.load(V + place[:, None] + d[None, :])
        s = tl.dot(q, k, input_precision="ieee") * (scale * 1.4426950408889634)
        s = tl.where(mine[None, :], s, -float("inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        a = tl.exp2(m - m_new)
        p = tl.exp2(s - m_new[:, None])
        l = l * a + tl.sum(p, axis=1)
        acc = acc * a[:, None]
        acc += tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m = m_new
    safe = tl.where(l == 0, 1.0, l)
    tl.store(Opart + (row * parts + k_part)[:, None] * D + d, acc / safe[:, None], mask=(r < group)[:, None])
    tl.store(Lpart + row * parts + k_part, m * 0.6931471805599453 + tl.log(safe), mask=r < group)


@triton.jit
def merge(Opart, Lpart, O, L, parts, P: tl.constexpr, D: tl.constexpr):
    row, d, p = tl.program_id(0), tl.arange(0, D), tl.arange(0, P)
    lse = tl.load(Lpart + row * parts + p, mask=p < parts, other=-float("inf"))
    o = tl.load(Opart + (row * parts + p)[:, None] * D + d[None, :], mask=(p < parts)[:, None], other=0.0)
    top = tl.max(lse, axis=0)
    top = tl.where(top == -float("inf"), 0.0, top)
    w = tl.exp(lse - top)
    total = tl.sum(w, axis=0)
    tl.store(O + row * D + d, tl.sum(w[:, None] * o, axis=0) / tl.where(total == 0, 1.0, total))
    tl.store(L + row, top + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, H, D = Q.shape
    _, Hk, page, _ = K.shape
    group = H // Hk
    Opart = torch.zeros(B, H, parts, D, dtype=torch.float32, device=Q.device)
    Lpart = torch.zeros(B, H, parts, dtype=torch.float32, device=Q.device)
    O, L = torch.zeros_like(Q), torch.zeros(B, H, device=Q.device)
    R = max(triton.next_power_of_2(group), 16)
    part[(parts, Hk, B)](Q, K, V, lengths, table, Opart, Lpart, Hk, page, table.size(1), parts, D**-0.5, group, R, D, 16)
    merge[(B * H,)](Opart, Lpart, O, L, parts, P=triton.next_power_of_2(parts), D=D)
    return O, L


# decode, read_again: a program for each head of Q
@triton.jit
def part(Q, K, V, lens, table, Opart, Lpart, Hk, page, most, parts, scale,
         group: tl.constexpr, R: tl.constexpr, D: tl.constexpr, C: tl.constexpr):
    k_part, own, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    h = own // group
    N = tl.load(lens + b)
    first = N * k_part // parts
    last = N * (k_part + 1) // parts
    r = tl.arange(0, R)
    d = tl.arange(0, D)
    row = b * Hk * group + own + r
    q = tl.load(Q + row[:, None] * D + d, mask=(r < 1)[:, None], other=0.0)
    m = tl.full([R], -float("inf"), tl.float32)
    l = tl.zeros([R], tl.float32)
    acc = tl.zeros([R, D], tl.float32)
    for start in range(first, last, C):
        c = start + tl.arange(0, C)
        mine = c < last
        number = tl.load(table + b * most + c // page, mask=mine, other=0)
        place = number * Hk * page * D + h * page * D + c % page * D
        k = tl.load(K + place[None, :] + d[:, None], mask=mine[None, :], other=0.0)
        v = tl.load(V + place[:, None] + d[None, :], mask=mine[:, None], other=0.0)
        s = tl.dot(q, k, input_precision="ieee") * (scale * 1.4426950408889634)
        s = tl.where(mine[None, :], s, -float("inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        a = tl.exp2(m - m_new)
        p = tl.exp2(s - m_new[:, None])
        l = l * a + tl.sum(p, axis=1)
        acc = acc * a[:, None]
        acc += tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m = m_new
    safe = tl.where(l == 0, 1.0, l)
    tl.store(Opart + (row * parts + k_part)[:, None] * D + d, acc / safe[:, None], mask=(r < 1)[:, None])
    tl.store(Lpart + row * parts + k_part, m * 0.6931471805599453 + tl.log(safe), mask=r < 1)


@triton.jit
def merge(Opart, Lpart, O, L, parts, P: tl.constexpr, D: tl.constexpr):
    row, d, p = tl.program_id(0), tl.arange(0, D), tl.arange(0, P)
    lse = tl.load(Lpart + row * parts + p, mask=p < parts, other=-float("inf"))
    o = tl.load(Opart + (row * parts + p)[:, None] * D + d[None, :], mask=(p < parts)[:, None], other=0.0)
    top = tl.max(lse, axis=0)
    top = tl.where(top == -float("inf"), 0.0, top)
    w = tl.exp(lse - top)
    total = tl.sum(w, axis=0)
    tl.store(O + row * D + d, tl.sum(w[:, None] * o, axis=0) / tl.where(total == 0, 1.0, total))
    tl.store(L + row, top + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, H, D = Q.shape
    _, Hk, page, _ = K.shape
    group = H // Hk
    Opart = torch.zeros(B, H, parts, D, dtype=torch.float32, device=Q.device)
    Lpart = torch.zeros(B, H, parts, dtype=torch.float32, device=Q.device)
    O, L = torch.zeros_like(Q), torch.zeros(B, H, device=Q.device)
    R = max(triton.next_power_of_2(group), 16)
    part[(parts, H, B)](Q, K, V, lengths, table, Opart, Lpart, Hk, page, table.size(1), parts, D**-0.5, group, R, D, 16)
    merge[(B * H,)](Opart, Lpart, O, L, parts, P=triton.next_power_of_2(parts), D=D)
    return O, L


# decode, one_kernel: merged by torch
@triton.jit
def part(Q, K, V, lens, table, Opart, Lpart, Hk, page, most, parts, scale,
         group: tl.constexpr, R: tl.constexpr, D: tl.constexpr, C: tl.constexpr):
    k_part, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    N = tl.load(lens + b)
    first = N * k_part // parts
    last = N * (k_part + 1) // parts
    r = tl.arange(0, R)
    d = tl.arange(0, D)
    row = b * Hk * group + h * group + r
    q = tl.load(Q + row[:, None] * D + d, mask=(r < group)[:, None], other=0.0)
    m = tl.full([R], -float("inf"), tl.float32)
    l = tl.zeros([R], tl.float32)
    acc = tl.zeros([R, D], tl.float32)
    for start in range(first, last, C):
        c = start + tl.arange(0, C)
        mine = c < last
        number = tl.load(table + b * most + c // page, mask=mine, other=0)
        place = number * Hk * page * D + h * page * D + c % page * D
        k = tl.load(K + place[None, :] + d[:, None], mask=mine[None, :], other=0.0)
        v = tl.load(V + place[:, None] + d[None, :], mask=mine[:, None], other=0.0)
        s = tl.dot(q, k, input_precision="ieee") * (scale * 1.4426950408889634)
        s = tl.where(mine[None, :], s, -float("inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        a = tl.exp2(m - m_new)
        p = tl.exp2(s - m_new[:, None])
        l = l * a + tl.sum(p, axis=1)
        acc = acc * a[:, None]
        acc += tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m = m_new
    safe = tl.where(l == 0, 1.0, l)
    tl.store(Opart + (row * parts + k_part)[:, None] * D + d, acc / safe[:, None], mask=(r < group)[:, None])
    tl.store(Lpart + row * parts + k_part, m * 0.6931471805599453 + tl.log(safe), mask=r < group)


def my_decode(Q, K, V, lengths, table, parts):
    B, H, D = Q.shape
    _, Hk, page, _ = K.shape
    group = H // Hk
    Opart = torch.zeros(B, H, parts, D, dtype=torch.float32, device=Q.device)
    Lpart = torch.zeros(B, H, parts, dtype=torch.float32, device=Q.device)
    O, L = torch.zeros_like(Q), torch.zeros(B, H, device=Q.device)
    R = max(triton.next_power_of_2(group), 16)
    part[(parts, Hk, B)](Q, K, V, lengths, table, Opart, Lpart, Hk, page, table.size(1), parts, D**-0.5, group, R, D, 16)
    L = torch.logsumexp(Lpart, dim=2)
    w = torch.exp(Lpart - torch.where(L == -torch.inf, 0, L)[..., None])
    return (w[..., None] * Opart).sum(dim=2).to(Q.dtype), L


# decode, copied: the pages of a sequence are copied first
@triton.jit
def part(Q, K, V, lens, table, Opart, Lpart, Hk, page, most, parts, scale,
         group: tl.constexpr, R: tl.constexpr, D: tl.constexpr, C: tl.constexpr):
    k_part, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    N = tl.load(lens + b)
    first = N * k_part // parts
    last = N * (k_part + 1) // parts
    r = tl.arange(0, R)
    d = tl.arange(0, D)
    row = b * Hk * group + h * group + r
    q = tl.load(Q + row[:, None] * D + d, mask=(r < group)[:, None], other=0.0)
    m = tl.full([R], -float("inf"), tl.float32)
    l = tl.zeros([R], tl.float32)
    acc = tl.zeros([R, D], tl.float32)
    for start in range(first, last, C):
        c = start + tl.arange(0, C)
        mine = c < last
        number = tl.load(table + b * most + c // page, mask=mine, other=0)
        place = number * Hk * page * D + h * page * D + c % page * D
        k = tl.load(K + place[None, :] + d[:, None], mask=mine[None, :], other=0.0)
        v = tl.load(V + place[:, None] + d[None, :], mask=mine[:, None], other=0.0)
        s = tl.dot(q, k, input_precision="ieee") * (scale * 1.4426950408889634)
        s = tl.where(mine[None, :], s, -float("inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        a = tl.exp2(m - m_new)
        p = tl.exp2(s - m_new[:, None])
        l = l * a + tl.sum(p, axis=1)
        acc = acc * a[:, None]
        acc += tl.dot(p.to(v.dtype), v, input_precision="ieee")
        m = m_new
    safe = tl.where(l == 0, 1.0, l)
    tl.store(Opart + (row * parts + k_part)[:, None] * D + d, acc / safe[:, None], mask=(r < group)[:, None])
    tl.store(Lpart + row * parts + k_part, m * 0.6931471805599453 + tl.log(safe), mask=r < group)


@triton.jit
def merge(Opart, Lpart, O, L, parts, P: tl.constexpr, D: tl.constexpr):
    row, d, p = tl.program_id(0), tl.arange(0, D), tl.arange(0, P)
    lse = tl.load(Lpart + row * parts + p, mask=p < parts, other=-float("inf"))
    o = tl.load(Opart + (row * parts + p)[:, None] * D + d[None, :], mask=(p < parts)[:, None], other=0.0)
    top = tl.max(lse, axis=0)
    top = tl.where(top == -float("inf"), 0.0, top)
    w = tl.exp(lse - top)
    total = tl.sum(w, axis=0)
    tl.store(O + row * D + d, tl.sum(w[:, None] * o, axis=0) / tl.where(total == 0, 1.0, total))
    tl.store(L + row, top + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, H, D = Q.shape
    _, Hk, page, _ = K.shape
    group = H // Hk
    Opart = torch.zeros(B, H, parts, D, dtype=torch.float32, device=Q.device)
    Lpart = torch.zeros(B, H, parts, dtype=torch.float32, device=Q.device)
    O, L = torch.zeros_like(Q), torch.zeros(B, H, device=Q.device)
    R = max(triton.next_power_of_2(group), 16)
    pages = table.clamp(0, len(K) - 1).long()
    K, V = (X[pages].flatten(0, 1) for X in (K, V))
    table = torch.arange(len(K), dtype=torch.int32, device=Q.device).view(B, -1)
    part[(parts, Hk, B)](Q, K, V, lengths, table, Opart, Lpart, Hk, page, table.size(1), parts, D**-0.5, group, R, D, 16)
    merge[(B * H,)](Opart, Lpart, O, L, parts, P=triton.next_power_of_2(parts), D=D)
    return O, L


# decode, m_from_low: a first maximum of 0
@triton.jit
def split_kernel(q_ptr, k_ptr, v_ptr, len_ptr, tab_ptr, m_ptr, l_ptr, acc_ptr, HK, G, PAGE, W, SPLITS, scale,
                 D: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    s = pid % SPLITS
    hk = pid // SPLITS % HK
    b = pid // SPLITS // HK
    rows = tl.arange(0, ROWS)
    dims = tl.arange(0, D)
    ok = rows < G
    hq = hk * G + rows
    q = tl.load(q_ptr + (b * HK * G + hq[:, None]) * D + dims[None, :], mask=ok[:, None], other=0.0)
    n = tl.load(len_ptr + b)
    blocks = (n + BLOCK - 1) // BLOCK
    per = (blocks + SPLITS - 1) // SPLITS
    mi = tl.zeros((ROWS,), tl.float32)
    li = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, D), tl.float32)
    for blk in range(s * per, tl.minimum((s + 1) * per, blocks)):
        key = blk * BLOCK + tl.arange(0, BLOCK)
        live = key < n
        pg = tl.load(tab_ptr + b * W + key // PAGE, mask=live, other=0)
        off = (pg * HK + hk) * PAGE * D + (key % PAGE) * D
        k = tl.load(k_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        v = tl.load(v_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        x = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        x = tl.where(live[None, :], x, float("-inf"))
        new = tl.maximum(mi, tl.max(x, 1))
        keep = tl.exp(mi - new)
        p = tl.exp(x - new[:, None])
        li = li * keep + tl.sum(p, 1)
        acc = acc * keep[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        mi = new
    at = (b * HK * G + hq) * SPLITS + s
    tl.store(m_ptr + at, mi, mask=ok)
    tl.store(l_ptr + at, li, mask=ok)
    tl.store(acc_ptr + at[:, None] * D + dims[None, :], acc, mask=ok[:, None])


@triton.jit
def join_kernel(m_ptr, l_ptr, acc_ptr, o_ptr, lse_ptr, SPLITS, D: tl.constexpr):
    row = tl.program_id(0)
    dims = tl.arange(0, D)
    big = float("-inf")
    for s in range(SPLITS):
        big = tl.maximum(big, tl.load(m_ptr + row * SPLITS + s))
    total = 0.0
    out = tl.zeros((D,), tl.float32)
    if big > float("-inf"):
        for s in range(SPLITS):
            w = tl.exp(tl.load(m_ptr + row * SPLITS + s) - big)
            total += w * tl.load(l_ptr + row * SPLITS + s)
            out += w * tl.load(acc_ptr + (row * SPLITS + s) * D + dims)
        out = out / total
    tl.store(o_ptr + row * D + dims, out)
    tl.store(lse_ptr + row, big + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, HQ, D = Q.shape
    HK, PAGE = K.shape[1], K.shape[2]
    G = HQ // HK
    m = torch.empty(B, HQ, parts, device=Q.device)
    l = torch.empty_like(m)
    acc = torch.empty(B, HQ, parts, D, device=Q.device)
    O = torch.empty_like(Q)
    lse = torch.empty(B, HQ, device=Q.device)
    split_kernel[(B * HK * parts,)](
        Q, K, V, lengths, table, m, l, acc, HK, G, PAGE, table.shape[1], parts, D ** -0.5,
        D=D, ROWS=max(16, triton.next_power_of_2(G)), BLOCK=32)
    join_kernel[(B * HQ,)](m, l, acc, O, lse, parts, D=D)
    return O, lse


# decode, outside: the number of a page is loaded for all places of a tile
@triton.jit
def split_kernel(q_ptr, k_ptr, v_ptr, len_ptr, tab_ptr, m_ptr, l_ptr, acc_ptr, HK, G, PAGE, W, SPLITS, scale,
                 D: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    s = pid % SPLITS
    hk = pid // SPLITS % HK
    b = pid // SPLITS // HK
    rows = tl.arange(0, ROWS)
    dims = tl.arange(0, D)
    ok = rows < G
    hq = hk * G + rows
    q = tl.load(q_ptr + (b * HK * G + hq[:, None]) * D + dims[None, :], mask=ok[:, None], other=0.0)
    n = tl.load(len_ptr + b)
    blocks = (n + BLOCK - 1) // BLOCK
    per = (blocks + SPLITS - 1) // SPLITS
    mi = tl.full((ROWS,), float("-inf"), tl.float32)
    li = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, D), tl.float32)
    for blk in range(s * per, tl.minimum((s + 1) * per, blocks)):
        key = blk * BLOCK + tl.arange(0, BLOCK)
        live = key < n
        pg = tl.load(tab_ptr + b * W + key // PAGE)
        off = (pg * HK + hk) * PAGE * D + (key % PAGE) * D
        k = tl.load(k_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        v = tl.load(v_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        x = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        x = tl.where(live[None, :], x, float("-inf"))
        new = tl.maximum(mi, tl.max(x, 1))
        keep = tl.exp(mi - new)
        p = tl.exp(x - new[:, None])
        li = li * keep + tl.sum(p, 1)
        acc = acc * keep[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        mi = new
    at = (b * HK * G + hq) * SPLITS + s
    tl.store(m_ptr + at, mi, mask=ok)
    tl.store(l_ptr + at, li, mask=ok)
    tl.store(acc_ptr + at[:, None] * D + dims[None, :], acc, mask=ok[:, None])


@triton.jit
def join_kernel(m_ptr, l_ptr, acc_ptr, o_ptr, lse_ptr, SPLITS, D: tl.constexpr):
    row = tl.program_id(0)
    dims = tl.arange(0, D)
    big = float("-inf")
    for s in range(SPLITS):
        big = tl.maximum(big, tl.load(m_ptr + row * SPLITS + s))
    total = 0.0
    out = tl.zeros((D,), tl.float32)
    if big > float("-inf"):
        for s in range(SPLITS):
            w = tl.exp(tl.load(m_ptr + row * SPLITS + s) - big)
            total += w * tl.load(l_ptr + row * SPLITS + s)
            out += w * tl.load(acc_ptr + (row * SPLITS + s) * D + dims)
        out = out / total
    tl.store(o_ptr + row * D + dims, out)
    tl.store(lse_ptr + row, big + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, HQ, D = Q.shape
    HK, PAGE = K.shape[1], K.shape[2]
    G = HQ // HK
    m = torch.empty(B, HQ, parts, device=Q.device)
    l = torch.empty_like(m)
    acc = torch.empty(B, HQ, parts, D, device=Q.device)
    O = torch.empty_like(Q)
    lse = torch.empty(B, HQ, device=Q.device)
    split_kernel[(B * HK * parts,)](
        Q, K, V, lengths, table, m, l, acc, HK, G, PAGE, table.shape[1], parts, D ** -0.5,
        D=D, ROWS=max(16, triton.next_power_of_2(G)), BLOCK=32)
    join_kernel[(B * HQ,)](m, l, acc, O, lse, parts, D=D)
    return O, lse


# decode, scale_unused: 1 / sqrt of the group
@triton.jit
def split_kernel(q_ptr, k_ptr, v_ptr, len_ptr, tab_ptr, m_ptr, l_ptr, acc_ptr, HK, G, PAGE, W, SPLITS, scale,
                 D: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    s = pid % SPLITS
    hk = pid // SPLITS % HK
    b = pid // SPLITS // HK
    rows = tl.arange(0, ROWS)
    dims = tl.arange(0, D)
    ok = rows < G
    hq = hk * G + rows
    q = tl.load(q_ptr + (b * HK * G + hq[:, None]) * D + dims[None, :], mask=ok[:, None], other=0.0)
    n = tl.load(len_ptr + b)
    blocks = (n + BLOCK - 1) // BLOCK
    per = (blocks + SPLITS - 1) // SPLITS
    mi = tl.full((ROWS,), float("-inf"), tl.float32)
    li = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, D), tl.float32)
    for blk in range(s * per, tl.minimum((s + 1) * per, blocks)):
        key = blk * BLOCK + tl.arange(0, BLOCK)
        live = key < n
        pg = tl.load(tab_ptr + b * W + key // PAGE, mask=live, other=0)
        off = (pg * HK + hk) * PAGE * D + (key % PAGE) * D
        k = tl.load(k_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        v = tl.load(v_ptr + off[:, None] + dims[None, :], mask=live[:, None], other=0.0)
        x = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        x = tl.where(live[None, :], x, float("-inf"))
        new = tl.maximum(mi, tl.max(x, 1))
        keep = tl.exp(mi - new)
        p = tl.exp(x - new[:, None])
        li = li * keep + tl.sum(p, 1)
        acc = acc * keep[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        mi = new
    at = (b * HK * G + hq) * SPLITS + s
    tl.store(m_ptr + at, mi, mask=ok)
    tl.store(l_ptr + at, li, mask=ok)
    tl.store(acc_ptr + at[:, None] * D + dims[None, :], acc, mask=ok[:, None])


@triton.jit
def join_kernel(m_ptr, l_ptr, acc_ptr, o_ptr, lse_ptr, SPLITS, D: tl.constexpr):
    row = tl.program_id(0)
    dims = tl.arange(0, D)
    big = float("-inf")
    for s in range(SPLITS):
        big = tl.maximum(big, tl.load(m_ptr + row * SPLITS + s))
    total = 0.0
    out = tl.zeros((D,), tl.float32)
    if big > float("-inf"):
        for s in range(SPLITS):
            w = tl.exp(tl.load(m_ptr + row * SPLITS + s) - big)
            total += w * tl.load(l_ptr + row * SPLITS + s)
            out += w * tl.load(acc_ptr + (row * SPLITS + s) * D + dims)
        out = out / total
    tl.store(o_ptr + row * D + dims, out)
    tl.store(lse_ptr + row, big + tl.log(total))


def my_decode(Q, K, V, lengths, table, parts):
    B, HQ, D = Q.shape
    HK, PAGE = K.shape[1], K.shape[2]
    G = HQ // HK
    m = torch.empty(B, HQ, parts, device=Q.device)
    l = torch.empty_like(m)
    acc = torch.empty(B, HQ, parts, D, device=Q.device)
    O = torch.empty_like(Q)
    lse = torch.empty(B, HQ, device=Q.device)
    split_kernel[(B * HK * parts,)](
        Q, K, V, lengths, table, m, l, acc, HK, G, PAGE, table.shape[1], parts, G ** -0.5,
        D=D, ROWS=max(16, triton.next_power_of_2(G)), BLOCK=32)
    join_kernel[(B * HQ,)](m, l, acc, O, lse, parts, D=D)
    return O, lse
