"""The questions of this chapter."""

from flashlib import cost
from flashlib.checks.engine.prediction import Question
from flashlib.gpus import KB

DKV, DQ = {"S", "dP", "dV", "dK"}, {"S", "dP", "dQ"}  # the matrix products of the two passes
FORWARD = {"S", "O"}


def _products():
    """Return the matrix products per tile of the two kinds of backward pass, and of the forward pass."""
    return {"two_passes": len(DKV) + len(DQ), "fused": len(DKV | DQ), "forward": len(FORWARD)}


def _by_convention(speed):
    """Return the TFLOP/s by the convention of two passes whose products run at `speed`."""
    counted = cost.backward_flops(4096, 4096, 128) * len(FORWARD) / cost.flops(4096, 4096, 128)
    return speed * counted / _products()["two_passes"]


def _registers(B_c, d, num_warps):
    """Return the registers per thread for dK_j and dV_j in fp32, of four bytes like a register."""
    return 2 * B_c * d // (32 * num_warps)


def _additions(N, B):
    """Return how often each number of dQ is added to: without a mask, and in the first and last row blocks."""
    each, causal = (cost.tiles_per_row_block(N, N, B_r=B, B_c=B, causal=causal) for causal in (False, True))
    return {"no_mask": int(each[-1]), "first": int(causal[0]), "last": int(causal[-1])}


def _kept(N, d):
    """Return the KB of Q, K, V, O and lse of one head in bf16, and those of P."""
    itemsize = cost.ITEMSIZE["bfloat16"]
    return {"kept": (4 * N * d * itemsize + 4 * N) // KB, "P": N * N * itemsize // KB}


def _scores(layers, batch, heads, context):
    """Return the GB of P in fp32 and of its copy in bf16, for all scores of a step."""
    return layers * batch * heads * context**2 * (cost.ITEMSIZE["float32"] + cost.ITEMSIZE["bfloat16"]) / 1e9


def _differ():
    """Return the gradients that several programs of the fused kernel add to, in no fixed order.

    A program has one column block: sums over its own loop are in order, sums over column blocks are not.
    """
    summed_over = {"dQ": "keys", "dK": "queries", "dV": "queries"}
    found = [name for name, over in summed_over.items() if over == "keys"]
    return {("dQ",): "dQ", ("dK", "dV"): "dK and dV"}[tuple(found)]


QUESTIONS = [
    Question(
        "grads_products",
        _products,
        "the pass for dK and dV computes S, dP, dV and dK, the other S, dP and dQ: seven. One pass for all three "
        "computes S and dP once: five. The forward pass has S and O.",
        hint="List S, dP, dV, dK and dQ. Which are needed in both passes? And which products make S and O?",
        labels={"fused": "one pass"},
        wrong={
            ("two_passes", 5): "S and dP are computed in both passes",
            ("two_passes", 6): "both passes need S and dP",
            ("two_passes", 8): "the pass for dQ has three: S, dP and dQ",
            ("fused", 4): "P is not kept, so S = Q K^T is computed again too",
            ("fused", 3): "S and dP come before dV, dK and dQ",
            ("fused", 7): "S and dP are computed once for all three gradients",
            ("forward", 1): "S = Q K^T and O = P V",
            ("forward", 3): "S = Q K^T and O = P V; the softmax is not a matrix product",
        },
    ),
    Question(
        "grads_speed_limit",
        lambda: _by_convention(560),
        "the time is that of seven products, and five are counted: 560 * 5 / 7.",
        hint="The time is that of the products really done. By the convention fewer of them are counted.",
        wrong={
            560: "that is the speed of all seven products, of which the convention counts five",
            784: "five are counted and seven computed, so the number becomes smaller, not larger",
            320: "that is with four products counted: S, computed again, is counted too",
            160: "that is two of seven, as in the forward pass: five are counted",
            240: "that is three of seven: S and dP are counted too, once each",
            224: "5 / 2 is the ratio of the backward to the forward pass; five of seven are counted",
        },
        tolerance=0.001,
        unit="TFLOP/s",
    ),
    Question(
        "grads_registers",
        lambda: _registers(128, 128, 8),
        "dK_j and dV_j have 2 * 128 * 128 numbers of one register each, and 8 warps have 256 threads. A thread "
        "may have 255, and q, do, S^T, dP^T and addresses come on top.",
        hint="Count the numbers of dK_j and dV_j and divide by the threads. A warp has 32 threads.",
        wrong={
            64: "that is only dK_j, or both in 16 bits: there are two sums, in fp32",
            256: "that is with 4 warps: 8 warps have 256 threads",
            512: "a register holds the 4 bytes of a number in fp32",
            4096: "a warp has 32 threads",
            32768: "that is for the whole program, which has 256 threads",
        },
    ),
    Question(
        "grads_writes",
        lambda: _additions(4096, 128),
        "each of the 4096 / 128 = 32 column blocks adds its part. Under a causal mask the first rows see "
        "only the first column block, and the last rows see all of them.",
        hint="Each column block that sees a row block adds to it once. How many column blocks are there, and "
        "which see the first rows?",
        wrong={
            ("no_mask", 1): "that is how often dK and dV are written: each column block adds its part of dQ",
            ("no_mask", 128): "128 keys are summed in one tile, before the addition",
            ("no_mask", 4096): "128 keys are summed in one tile, before the addition",
            ("no_mask", 1024): "that counts the tiles of all row blocks: a row block has 32",
            ("first", 32): "the first rows see only the first column block",
            ("first", 0): "the first rows see their own keys, which are in the first column block",
            ("last", 1): "the last rows see all keys",
            ("last", 16): "that is the average: the last rows see all keys",
        },
    ),
    Question(
        "grads_memory",
        lambda: _kept(4096, 64),
        "Q, K, V and O have 4 * 4096 * 64 numbers of 2 bytes, lse has 4096 of 4: 2048 + 16 KB. P has 4096 * 4096 "
        "numbers of 2 bytes.",
        hint="Count numbers, times 2 bytes in bf16 and 4 in fp32, and divide by 1024.",
        wrong={
            ("kept", 2048): "lse is kept too, 4 bytes a row",
            ("kept", 1536): "O and lse are kept too, for delta and for P",
            ("kept", 1552): "one of the four, such as O, is left out",
            ("kept", 2056): "lse is kept in fp32, 4 bytes a row",
            ("kept", 4112): "a number in bf16 takes 2 bytes",
            ("kept", 1032): "a number in bf16 takes 2 bytes, not one",
            ("kept", 2080): "m and l are not kept: lse holds both",
            ("P", 65536): "a number in bf16 takes 2 bytes",
            ("P", 16384): "a number in bf16 takes 2 bytes, not one",
        },
        tolerance=0.0005,
        unit="KB",
    ),
    Question(
        "grads_order",
        _differ,
        "a program sums dK_j and dV_j on its own, in the order of its loop, and writes them once. All programs "
        "add to dQ, in the order in which they get there, and sums in fp32 depend on the order.",
        hint="Which gradient gets parts from several programs, and which are summed by a single one?",
        choices=("dQ", "dK and dV", "all three"),
        wrong={
            "dK and dV": "these are summed by one program, in the order of its loop",
            "all three": "dK_j and dV_j are summed by one program, in the order of its loop",
        },
    ),
    Question(  # as recorded in h200_backward.json: tests/checks/test_recorded_answers.py compares
        "grads_faster",
        lambda: {"d_64": "within a tenth", "d_128": "two passes"},
        "five products in place of seven do not make up for the additions, and for the registers and the shared "
        "memory that the one pass takes. At d = 128 only one of its programs fits on a multiprocessor.",
        hint="The one pass has fewer products. What does the table in section 4 say of its programs on an SM?",
        choices=("one pass", "two passes", "within a tenth"),
        labels={"d_64": "d = 64", "d_128": "d = 128"},
        wrong={
            ("d_64", "one pass"): "what it saves in products it loses to its additions and to longer waits",
            ("d_64", "two passes"): "at d = 64 two programs of either way fit on a multiprocessor",
            (
                "d_128",
                "one pass",
            ): "its products are fewer, but so are its programs on a multiprocessor, and it spills",
            (
                "d_128",
                "within a tenth",
            ): "while a program that is alone on a multiprocessor waits, no other fills the gap",
        },
    ),
    Question(  # as the notebook prints them: the same test compares
        "grads_same_losses",
        lambda: True,
        "both compute the same gradients in fp32, up to the order of their sums. A difference in the seventh "
        "digit has not grown to the third after 8 steps.",
        hint="In which digit do two sums in fp32 differ if only their order does?",
        wrong={False: "two sums in fp32 differ in about the seventh digit, and 8 steps are few"},
    ),
    Question(
        "grads_scores",
        lambda: _scores(6, 8, 8, 4096),
        "there are 6 * 8 * 8 * 4096 * 4096 scores, of 4 + 2 bytes each.",
        hint="Count the scores of one head of one text: N * N. Then all heads, texts and blocks, and the bytes.",
        wrong={
            25.77: "the copy in bf16 takes 2 bytes more for each score",
            12.88: "P is fp32 and there is a copy: 4 + 2 bytes for each score",
            6.44: "that is one block: the forward pass keeps P of all 6",
            4.83: "that is one text: a step has 8",
        },
        tolerance=0.02,
        unit="GB",
    ),
]
