"""Right answers in further styles: see `tests.checks.answers`."""


# work_of: a generator of work
def my_work_of(p, cu_seqlens, B_r):
    work = (
        (b, r, min(r + B_r, cu_seqlens[b + 1]))
        for b in range(len(cu_seqlens) - 1)
        for r in range(cu_seqlens[b], cu_seqlens[b + 1], B_r)
    )
    return next((w for n, w in enumerate(work) if n == p), (-1, 0, 0))
