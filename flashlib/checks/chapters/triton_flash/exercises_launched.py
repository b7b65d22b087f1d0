"""The exercises that launch kernels. Triton is imported by the checks, not here."""

import math
from collections.abc import Callable
from dataclasses import replace
from unittest import mock

import numpy as np

from flashlib import naive
from flashlib.checks.engine import Finding, Known, Measured, Verdict, examine, exercise, random_cases
from flashlib.checks.harness import multi_head, update
from flashlib.softmax import summarise_rows

INF = np.inf


@exercise(title="Any head dimension", minutes=10, difficulty="easy", optional=True)
def padded(answer: Callable, known: Known) -> Verdict:
    dimensions = 1, 20, 33, 64, 128
    in_fp32 = [_padded(f"d = {d}", (1, 2, 5, 7, d)) for d in dimensions] + random_cases.cases(_any_d, 2)
    in_fp16 = [_padded("fp16 tensors and d = 20", (1, 2, 5, 7, 20), dtype=np.float16, tolerance=2e-3)]
    fine = [_padded("numbers that fp16 cannot represent", (1, 2, 5, 7, 20), fine=True)]
    return examine(_on_rung_5(answer), [in_fp32, fine, in_fp16], known, outputs=("O",))


def _padded(words, shape, **options):
    return multi_head.case(words, shape, lambda Q, K, V: naive.attention(Q, K, V).O, **options)


def _any_d(rng):
    N_q, N_k, d = map(int, (*rng.integers(1, 40, 2), rng.integers(1, 129)))
    return _padded(f"N_q = {N_q}, N_k = {N_k}, d = {d}", (2, 1, N_q, N_k, d), rng=rng)


def _on_rung_5(answer):
    """Return answer as a function of arrays; it reports how rung 5 was called."""
    from flashlib.checks.harness.launches import launched
    from flashlib.kernels.ladder import r5_causal

    launch, attended, dimensions, sizes = r5_causal.launch, multi_head.O_alone(launched(answer)), [], []

    def noted(kernel, Q, K, V, **options):
        dimensions.append(Q.shape[-1])
        sizes.extend(X.element_size() for X in (Q, K, V))
        return launch(kernel, Q, K, V, **options)

    def run(Q, K, V):
        dimensions.clear()
        sizes.clear()
        with mock.patch.object(r5_causal, "launch", noted):
            try:
                O, found = attended(Q, K, V)
            except Finding as slip:
                raise Finding("not_rung_5") if slip.id == "no_kernel" else slip from None
        d = Q.shape[-1]
        exact = max(16, 1 << (d - 1).bit_length())
        if not dimensions:
            found = Finding("not_rung_5")
        elif min(sizes) < Q.itemsize:
            found = Finding("rounded")
        elif found and found.id == "course_kernel":
            found = None if dimensions[-1] == exact else Finding("too_far", d=d, given=dimensions[-1], exact=exact)
        return Measured(O, found)

    return run


def _with_penalty(text):
    """Return the ProgramText of a loop whose update subtracts the penalty, also in the edits."""
    signature = "step(Q_i, K_j, V_j, m_old, l_old, O_acc_old, scale, r, c, past, slope)"
    before = "seen = c <= r + past", "distance = r + past - c", "penalty = slope * distance"
    looped = update.looped(text, signature=signature, before=before, **multi_head.READ)
    return looped.in_terms({", -np.inf)": " - penalty, -np.inf)"})


@exercise(title="A penalty for distance", minutes=30, difficulty="hard", program=_with_penalty, optional=True)
def alibi(answer: Callable, known: Known) -> Verdict:
    tiles = multi_head.AttentionTilings()
    stages = [
        [
            _penalised("one query and one key", (1, 1, 1, 1, 16), 0.5),
            _penalised("a slope of 0", (1, 1, 16, 16, 16), 0.0),
            _penalised("a slope of 0 and scores of 0", (1, 1, 5, 37, 16), 0.0, size=0),
            _penalised("a slope that fp16 cannot represent", (1, 1, 5, 37, 16), 0.3),
            _penalised("two tiles", (1, 1, 16, 32, 16), 0.5),
            _penalised("tiles of 16 that N does not fill", (1, 1, 21, 21, 16), 0.5),
            _penalised("two sequences of three heads", (2, 3, 5, 7, 16), 0.25),
            _penalised("large scores and d = 64", (1, 1, 5, 37, 64), 2.0, size=64),
            _penalised("many keys", (1, 1, 2, 300, 16), 1 / 64),
            _penalised("scores in the millions, all below 0 in some rows", (1, 1, 16, 16, 16), 2.0, size=2**22),
            *random_cases.cases(_any_penalised, 1),
        ],
        [_penalised("more queries than keys", (1, 1, 70, 5, 16), 0.5)],
        [_penalised("numbers that fp16 cannot represent", (1, 1, 21, 21, 16), 0.5, fine=True)],
        [
            _penalised("Q, K and V, each in a different order", (1, 2, 5, 7, 16), 0.5, stored=multi_head.APART),
        ],
    ]
    known = replace(known, variants=tiles)
    return examine(multi_head.streaming(answer, multi_head.O_alone, tiles), stages, known, outputs=("O",))


def _penalised(words, shape, slope, **options):
    """Return the Case of Q, K and V with shape (B, H, N_q, N_k, d)."""
    return multi_head.case(words, shape, _alibi, slope, **options)


def _any_penalised(rng):
    N_q, more, H = map(int, (*rng.integers(1, 21, 2), rng.integers(1, 3)))
    shape = 1, H, N_q, N_q + more, int(rng.choice([16, 64]))
    slope = float(rng.integers(1, 64) / 32)
    return _penalised(f"a shape (B, H, N_q, N_k, d) of {shape}", shape, slope, rng=rng)


def _alibi(Q, K, V, slope):
    """Return causal attention with a penalty for distance, for one head."""
    distance = np.arange(len(Q))[:, None] + len(K) - len(Q) - np.arange(len(K))
    S = Q @ K.T / math.sqrt(Q.shape[1]) - slope * distance
    return update.finished(summarise_rows(np.where(distance >= 0, S, -INF), V))[0]
