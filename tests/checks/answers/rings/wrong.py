"""Wrong answers: see `tests.checks.answers`."""


# add_hop, mean: in a loop
def my_add_hop(O, lse, O_new, lse_new, first, end):
    O, lse = O.copy(), lse.copy()
    for i in range(first, end):
        O[i] = 0.5 * O[i] + 0.5 * O_new[i - first]
        lse[i] = np.logaddexp(lse[i], lse_new[i - first])
    return O, lse


# add_hop, overflow: the weights are the powers themselves
def my_add_hop(O, lse, O_new, lse_new, first, end):
    O, lse = O.copy(), lse.copy()
    a, b = np.exp(lse[first:end]), np.exp(lse_new)
    O[first:end] = (a[:, None] * O[first:end] + b[:, None] * O_new) / (a + b)[:, None]
    lse[first:end] = np.log(a + b)
    return O, lse


# add_hop, first_rows: the first rows
def my_add_hop(O, lse, O_new, lse_new, first, end):
    O, lse = O.copy(), lse.copy()
    n = len(lse_new)
    both = np.logaddexp(lse[:n], lse_new)
    shift = np.where(both == -np.inf, 0, both)
    O[:n] = np.exp(lse[:n] - shift)[:, None] * O[:n] + np.exp(lse_new - shift)[:, None] * O_new
    lse[:n] = both
    return O, lse


# add_hop, old_not_rescaled: the old lse is a view, and changes before it is used
def my_add_hop(O, lse, O_new, lse_new, first, end):
    O, lse = O.copy(), lse.copy()
    old = lse[first:end]
    lse[first:end] = np.logaddexp(old, lse_new)
    w = np.exp(lse_new - lse[first:end])[:, None]
    w_old = np.exp(old - lse[first:end])[:, None]
    O[first:end] = O[first:end] * w_old + w * O_new
    return O, lse


# add_hop, no_key_nan: as in Online softmax, without the guard
def my_add_hop(O, lse, O_new, lse_new, first, end):
    O, lse = O.copy(), lse.copy()
    old = lse[first:end].copy()
    lse[first:end] = np.logaddexp(old, lse_new)
    w = np.exp(lse_new - lse[first:end])[:, None]
    w_old = np.exp(old - lse[first:end])[:, None]
    O[first:end] = O[first:end] * w_old + w * O_new
    return O, lse


# ring_rank, deadlock: even ranks and odd ranks both send first
def my_ring_rank(me):
    state, here = me.nothing(), me.own
    for hop in range(me.P):
        source, coming = me.source(hop), me.buffer(f"kv{hop % 2}")
        new, n_tiles = me.partial(source, *here.arrays)
        state = me.merged(state, new)
        yield Compute(source, n_tiles, state)
        if hop < me.P - 1:
            if me.r % 2:
                yield Send(me.next, here)
                yield Wait()
                yield Receive(me.previous, coming)
            else:
                yield Send(me.next, here)
                yield Wait(here)
                yield Receive(me.previous, coming)
            yield Wait()
            here = coming
    return me.finish(state)


# ring_rank, read_too_early: what came is read before it is there
def my_ring_rank(me):
    state, spare = me.nothing(), [me.buffer("0"), me.buffer("1")]
    held = [me.own]
    for hop in range(me.P - 1):
        yield Receive(me.previous, spare[hop % 2])
        yield Send(me.next, held[-1])
        held.append(spare[hop % 2])
        state = me.merged(state, me.partial(me.source(hop + 1), *held[-1].arrays)[0])
        yield Wait()
    return me.finish(state)


# ring_rank, slow: all keys are gathered first
def my_ring_rank(me):
    held = {me.r: me.own}
    for hop in range(1, me.P):
        source = (me.r - hop) % me.P
        held[source] = me.buffer(f"from {source}")
        yield Send((me.r + hop) % me.P, me.own)
        yield Receive(source, held[source])
    yield Wait()
    state = me.nothing()
    for hop in range(me.P):
        source = (me.r - hop) % me.P
        new, n_tiles = me.partial(source, *held[source].arrays)
        state = me.merged(state, new)
        yield Compute(source, n_tiles, state)
    return me.finish(state)


# ring_rank, slow: one after the other, without a copy under the tiles
def my_ring_rank(me):
    state, here, spare = me.nothing(), me.own, [me.buffer("0"), me.buffer("1")]
    for hop in range(me.P):
        new, n_tiles = me.partial(me.source(hop), *here.arrays)
        state = me.merged(state, new)
        yield Compute(me.source(hop), n_tiles, state)
        if hop < me.P - 1:
            if me.r == 0:
                yield Send(me.next, here)
                yield Wait()
                yield Receive(me.previous, spare[hop % 2])
                yield Wait()
            else:
                yield Receive(me.previous, spare[hop % 2])
                yield Wait()
                yield Send(me.next, here)
                yield Wait()
            here = spare[hop % 2]
    return me.finish(state)


# ring_rank, never_sent: the last rank does not send
def my_ring_rank(me):
    here, state, spare = me.own, me.nothing(), [me.buffer("0"), me.buffer("1")]
    for hop in range(me.P):
        if hop < me.P - 1:
            if me.r < me.P - 1:
                yield Send(me.next, here)
            yield Receive(me.previous, spare[hop % 2])
        new, n_tiles = me.partial(me.source(hop), *here.arrays)
        state = me.merged(state, new)
        yield Compute(me.source(hop), n_tiles, state)
        yield Wait()
        here = spare[hop % 2]
    return me.finish(state)


# ring_rank, untaken: rank 0 does not receive
def my_ring_rank(me):
    here, state, spare = me.own, me.nothing(), [me.buffer("0"), me.buffer("1")]
    for hop in range(me.P):
        if hop < me.P - 1:
            yield Send(me.next, here)
            if me.r > 0:
                yield Receive(me.previous, spare[hop % 2])
        new, n_tiles = me.partial(me.source(hop), *me.own.arrays)
        state = me.merged(state, new)
        yield Compute(me.source(hop), n_tiles, state)
        yield Wait()
        here = me.own
    return me.finish(state)


# ring_rank, left_behind: nothing is waited for at the end
def my_ring_rank(me):
    here, state, spare = me.own, me.nothing(), [me.buffer("0"), me.buffer("1")]
    for hop in range(me.P):
        coming = spare[hop % 2]
        if hop < me.P - 1:
            yield Send(me.next, here)
            yield Receive(me.previous, coming)
        new, n_tiles = me.partial(me.source(hop), *here.arrays)
        state = me.merged(state, new)
        yield Compute(me.source(hop), n_tiles, state)
        if hop < me.P - 2:
            yield Wait()
        else:
            yield Wait(coming)
        here = coming
    return me.finish(state)


# ring_rank, no_generator: a loop that returns its commands
def my_ring_rank(me):
    return [Send(me.next, me.own), Receive(me.previous, me.buffer("kv")), Wait()]


# zigzag_rows, contiguous: the r-th part of all rows
def my_zigzag_rows(N, P, r):
    return np.array_split(np.arange(N), P)[r] if N % P == 0 else np.arange(r * N // P, (r + 1) * N // P)


# zigzag_rows, rest_first: NumPy's own cut
def my_zigzag_rows(N, P, r):
    pieces = np.array_split(np.arange(N), 2 * P)
    return np.concatenate([pieces[r], pieces[-1 - r]])


# zigzag_rows, back_first: a set, sorted the wrong way
def my_zigzag_rows(N, P, r):
    pieces = [range(i * N // (2 * P), (i + 1) * N // (2 * P)) for i in range(2 * P)]
    return [*pieces[2 * P - 1 - r], *pieces[r]]


# hop_part, late_nothing: as in a contiguous layout
def my_hop_part(r, s, n):
    if s > r:
        return n, n, 0, 0, False
    if s == r:
        return 0, n, 0, n, True
    return 0, n, 0, n // 2, False


# hop_part, exchanged_cases: earlier for later
def my_hop_part(r, s, n):
    if r == s:
        return 0, n, 0, n, True
    return (0, n, 0, n // 2, False) if s > r else (n // 2, n, 0, n, False)


# hop_part, always_causal: left to the mask
def my_hop_part(r, s, n):
    a, b = (n // 2 if s > r else 0), (n // 2 if s < r else n)
    return a, n, 0, b, 1


# hide_copy, rounded_down: whole tokens
def my_hide_copy(H, H_k, itemsize, flops, bandwidth, causal):
    copy = 2 * H_k * itemsize * flops
    compute = (2 if causal else 4) * H * bandwidth
    return copy // compute


# hide_copy, causal_half: the share on the wrong side
def my_hide_copy(H, H_k, itemsize, flops, bandwidth, causal):
    share = 0.5 if causal else 1
    return int(np.ceil(share * 2 * H_k * itemsize * flops / (4 * H * bandwidth)))


# hide_copy, heads_cancel: one head of each
def my_hide_copy(H, H_k, itemsize, flops, bandwidth, causal):
    return -(-itemsize * flops // ((1 if causal else 2) * bandwidth))


# ring_gradients, numbers: shares are added up at home
def my_ring_gradients(me):
    delta, dQ, dK, dV = me.delta(), 0, 0, 0
    here, spare = me.own, [me.buffer("0"), me.buffer("1")]
    for hop in range(me.P):
        yield Send(me.next, here)
        yield Receive(me.previous, spare[hop % 2])
        new, n_tiles = me.gradients((me.r - hop) % me.P, *here.arrays, delta)
        dQ, dK, dV = dQ + new.dQ, dK + new.dK, dV + new.dV
        yield Compute((me.r - hop) % me.P, n_tiles)
        yield Wait()
        here = spare[hop % 2]
    return Grads(dQ, dK, dV)


# ring_gradients, returns: a dict
def my_ring_gradients(me):
    K, V = me.own.arrays
    new, n_tiles = me.gradients(me.r, K, V, me.delta())
    yield Compute(me.r, n_tiles)
    return {"dQ": new.dQ, "dK": new.dK, "dV": new.dV}


# ring_gradients, deadlock: sends, and waits until it is sent
def my_ring_gradients(me):
    delta, dQ, moving = me.delta(), 0, (me.K, me.V, 0 * me.K, 0 * me.V)
    out, into = me.buffer("out"), me.buffer("into")
    for hop in range(me.P):
        new, n_tiles = me.gradients(me.source(hop), *moving[:2], delta)
        dQ = dQ + new.dQ
        out.put((*moving[:2], moving[2] + new.dK, moving[3] + new.dV))
        yield Send(me.next, out)
        yield Compute(me.source(hop), n_tiles)
        yield Wait(out)
        yield Receive(me.previous, into)
        yield Wait(into)
        moving = into.arrays
    return Grads(dQ, *moving[2:])


# ring_gradients, overwritten: the buffer that is received is received again
def my_ring_gradients(me):
    delta, dQ, moving = me.delta(), 0, (me.K, me.V, 0 * me.K, 0 * me.V)
    out, into = me.buffer("out"), me.buffer("into")
    for hop in range(me.P):
        new, n_tiles = me.gradients(me.source(hop), *moving[:2], delta)
        dQ = dQ + new.dQ
        share = *moving[:2], moving[2] + new.dK, moving[3] + new.dV
        yield Compute(me.source(hop), n_tiles)
        yield Receive(me.previous, into)
        out.put(share)
        yield Send(me.next, out)
        yield Receive(me.previous, into)
        yield Wait()
        moving = into.arrays
    return Grads(dQ, *moving[2:])


# way_bytes, hops_P: once round
def my_way_bytes(N, P, H, H_k, d, itemsize):
    KV = 2 * (N // P) * H_k * d * itemsize
    rest = (N // P) * H * (2 * d * itemsize + 4)
    return KV * P, (KV + rest) * (P - 1) // P


# way_bytes, whole_share: nothing stays
def my_way_bytes(N, P, H, H_k, d, itemsize):
    row = 2 * H_k * d * itemsize
    return (N - N // P) * row, N // P * (row + 2 * H * d * itemsize + 4 * H)


# way_bytes, lse_missing: tensors alone
def my_way_bytes(N, P, H, H_k, d, itemsize):
    KV, QO = (2 * N // P * heads * d * itemsize for heads in (H_k, H))
    return (P - 1) * KV, (P - 1) * (KV + QO) // P
