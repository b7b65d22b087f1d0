"""Solutions of this chapter."""

# ruff: noqa: I001
import flashlib.kernels  # noqa: F401  before triton
import numpy as np
import torch
import triton
import triton.language as tl


# exercise: gather_pages
def my_gather_pages(pool, table, first, N):
    c = np.arange(first, N)
    page = pool.shape[1]
    return pool[table[c // page], c % page]


# exercise: pages
class MyPages:
    def __init__(self, n_pages, page):
        self.page = page
        self.unused = list(range(n_pages))
        self.owners = [0] * n_pages
        self.tables, self.lengths = {}, {}
        self.started = 0

    def start(self):
        self.started += 1
        self.tables[self.started], self.lengths[self.started] = [], 0
        return self.started

    def append(self, sequence, n):
        table, N = self.tables[sequence], self.lengths[sequence]
        copies = n > 0 and N % self.page > 0 and self.owners[table[-1]] > 1
        more = -(-(N + n) // self.page) - len(table)
        if more + copies > len(self.unused):
            raise MemoryError(f"{more + copies} pages are needed and {len(self.unused)} are free")
        copied = None
        if copies:  # on write
            old, new = table[-1], self._take()
            self.owners[old] -= 1
            table[-1] = new
            copied = old, new
        table += [self._take() for _ in range(more)]
        self.lengths[sequence] = N + n
        return [(table[c // self.page], c % self.page) for c in range(N, N + n)], copied

    def fork(self, sequence):
        new = self.start()
        self.tables[new] = list(self.tables[sequence])
        self.lengths[new] = self.lengths[sequence]
        for page in self.tables[new]:
            self.owners[page] += 1
        return new

    def free(self, sequence):
        for page in self.tables.pop(sequence):
            self.owners[page] -= 1
            if self.owners[page] == 0:
                self.unused.append(page)
        del self.lengths[sequence]

    def table(self, sequence):
        return self.tables[sequence]

    def _take(self):
        page = self.unused.pop()
        self.owners[page] = 1
        return page


def my_pages(n_pages, page):
    return MyPages(n_pages, page)


# exercise: append_kernel
@triton.jit
def my_append_kernel(new_ptr, pool_ptr, table_ptr, lengths_ptr, most, page, d, D: tl.constexpr):
    b = tl.program_id(0)
    c = tl.load(lengths_ptr + b) - 1
    cols = tl.arange(0, D)
    inside = (cols < d) & (c >= 0)
    slot = tl.load(table_ptr + b * most + c // page, mask=c >= 0, other=0).to(tl.int64) * page + c % page
    row = tl.load(new_ptr + b * d + cols, mask=inside, other=0.0)
    tl.store(pool_ptr + slot * d + cols, row, mask=inside)


# exercise: quantise
def my_quantise(X):
    largest = np.abs(X).max(axis=1)
    scale = np.where(largest > 0, largest / 127, 1)
    return np.rint(X / scale[:, None]).astype(np.int8), scale


# exercise: decode
@triton.jit
def part_kernel(
    Q_ptr, K_ptr, V_ptr, lengths_ptr, table_ptr, m_ptr, l_ptr, O_ptr, H_k, group, page, most, parts, scale,
    D: tl.constexpr, B_R: tl.constexpr, B_C: tl.constexpr,
):  # fmt: skip
    part, h_k, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    r, offs_d = tl.arange(0, B_R), tl.arange(0, D)
    inside = r < group
    head = (b * H_k + h_k) * group + r  # of Q
    q = tl.load(Q_ptr + head[:, None] * D + offs_d[None, :], mask=inside[:, None], other=0.0)
    m = tl.full((B_R,), -float("inf"), tl.float32)
    l = tl.zeros((B_R,), tl.float32)
    O_acc = tl.zeros((B_R, D), tl.float32)
    length = tl.load(lengths_ptr + b)
    tiles = tl.cdiv(length, B_C)
    for j in range(tiles * part // parts, tiles * (part + 1) // parts):
        c = j * B_C + tl.arange(0, B_C)
        seen = c < length
        id = tl.load(table_ptr + b * most + c // page, mask=seen, other=0).to(tl.int64)  # a pool may be large
        rows = ((id * H_k + h_k) * page + c % page)[:, None] * D + offs_d[None, :]
        k = tl.load(K_ptr + rows, mask=seen[:, None], other=0.0)
        v = tl.load(V_ptr + rows, mask=seen[:, None], other=0.0)
        S = tl.dot(q, k.T, input_precision="ieee") * scale
        S = tl.where(seen[None, :], S, -float("inf"))
        m_old = m
        m = tl.maximum(m_old, tl.max(S, axis=1))  # each tile has a key, so it is finite
        alpha = tl.exp(m_old - m)
        P = tl.exp(S - m[:, None])
        l = alpha * l + tl.sum(P, axis=1)
        O_acc = alpha[:, None] * O_acc + tl.dot(P.to(v.dtype), v, input_precision="ieee")
    at = head * parts + part
    tl.store(m_ptr + at, m, mask=inside)
    tl.store(l_ptr + at, l, mask=inside)
    tl.store(O_ptr + at[:, None] * D + offs_d[None, :], O_acc, mask=inside[:, None])


@triton.jit
def merge_kernel(m_ptr, l_ptr, acc_ptr, O_ptr, lse_ptr, parts, D: tl.constexpr, PARTS: tl.constexpr):
    row = tl.program_id(0)  # a head of a sequence
    s, offs_d = tl.arange(0, PARTS), tl.arange(0, D)
    at = row * parts + s
    m = tl.load(m_ptr + at, mask=s < parts, other=-float("inf"))
    l = tl.load(l_ptr + at, mask=s < parts, other=0.0)
    O_acc = tl.load(acc_ptr + at[:, None] * D + offs_d[None, :], mask=(s < parts)[:, None], other=0.0)
    m_all = tl.max(m, axis=0)
    shift = tl.where(m_all == -float("inf"), 0.0, m_all)  # no part has seen a key
    w = tl.exp(m - shift)
    l_all = tl.sum(w * l, axis=0)
    divisor = tl.where(l_all == 0.0, 1.0, l_all)
    O = tl.sum(w[:, None] * O_acc, axis=0) / divisor
    tl.store(O_ptr + row * D + offs_d, O.to(O_ptr.dtype.element_ty))
    tl.store(lse_ptr + row, m_all + tl.log(divisor))


def my_decode(Q, K, V, lengths, table, parts):
    (B, H_q, D), (_, H_k, page, _) = Q.shape, K.shape
    group, most = H_q // H_k, table.shape[1]
    m, l = torch.empty(2, B, H_q, parts, device=Q.device)
    O_acc = torch.empty(B, H_q, parts, D, device=Q.device)
    O, lse = torch.empty_like(Q), torch.empty(B, H_q, device=Q.device)
    B_R = max(16, triton.next_power_of_2(group))  # fewer rows are padded to 16
    B_C = 32 if Q.dtype == torch.float32 else 64
    sizes = H_k, group, page, most, parts, D**-0.5
    part_kernel[(parts, H_k, B)](Q, K, V, lengths, table, m, l, O_acc, *sizes, D=D, B_R=B_R, B_C=B_C)
    merge_kernel[(B * H_q,)](m, l, O_acc, O, lse, parts, D=D, PARTS=triton.next_power_of_2(parts))
    return O, lse
