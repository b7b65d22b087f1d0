"""The work of the Hopper kernel in eight bits on tiles in registers: scores, softmax, P as an operand, sums."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import warpgroup_mma

P_LOG2 = gl.constexpr(8.0)  # the largest weight of a row is 2^8; e4m3 ends at 448
MAGIC, MAGIC_NUMBER = gl.constexpr(0x4B400000), gl.constexpr(12582912.0)  # see `as_scores`
LOG_2 = gl.constexpr(0.6931471805599453)


@gluon.jit
def pin(x):
    """Return x, 32 bits, computed at this point: the compiler moves neither its inputs nor its users across."""
    return gl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=x.dtype, is_pure=False, pack=1)


@gluon.jit
def transposed(slot):
    """Return a slot (1, 1, n, m) as a matrix (m, n)."""
    return slot.reshape([slot.type.shape[2], slot.type.shape[3]]).permute((1, 0))


@gluon.jit
def scores(q, slot, S_LAYOUT: gl.constexpr):
    """Have the tensor cores begin S = Q K^T; `as_scores` explains the initial value of integer sums."""
    ROWS: gl.constexpr = q.type.shape[0]
    B_C: gl.constexpr = slot.type.shape[2]
    if slot.dtype == gl.int8:
        return warpgroup_mma(q, transposed(slot), gl.full([ROWS, B_C], MAGIC, gl.int32, S_LAYOUT), is_async=True)
    else:
        zero = gl.zeros([ROWS, B_C], gl.float32, S_LAYOUT)  # never made: use_acc=False
        return warpgroup_mma(q, transposed(slot), zero, use_acc=False, is_async=True)


@gluon.jit
def as_scores(S):
    """Return the tensor cores' sum in fp32, without an instruction: whole numbers get 1.5 * 2^23 added.

    Integer sums begin at the bits of that number. A sum below 2^22 either way, as of 256 products of 127 and 127,
    changes only the last bits. Softmax is not affected by a constant added to a row, and lse is corrected at the
    end.
    """
    return S.to(gl.float32, bitcast=True) if S.dtype == gl.int32 else S


@gluon.jit
def masked(S, start, limits):
    """Return scores of keys from `start` on, -inf from each row's limit on, the first key that it does not see."""
    S_LAYOUT: gl.constexpr = S.type.layout
    cols = start + gl.arange(0, S.type.shape[1], layout=gl.SliceLayout(0, S_LAYOUT))
    return gl.where(cols[None, :] < limits[:, None], S, -float("inf"))


@gluon.jit
def shifts(S, shift, factor):
    """Return the new shift of rows, and alpha, which rescales earlier sums to it: P = 2^(S factor - shift).

    The shift is rounded once and then kept: all P of a row carry the same error, which cancels in O and lse.
    """
    new = gl.maximum(shift, pin(gl.max(S, 1) * factor - P_LOG2))
    return new, gl.exp2(shift - finite(new))


@gluon.jit
def finite(shift):
    """Return a shift to subtract: it is -inf for rows that have seen nothing, and -inf - (-inf) would be nan."""
    return gl.maximum(shift, -3.0e38)


@gluon.jit
def by_row(x, like):
    """Return x, a number for each row, to be multiplied with `like`."""
    return gl.convert_layout(x, gl.SliceLayout(1, like.type.layout), assert_trivial=True)[:, None]


@gluon.jit
def partial_sums(P):
    """Return partial sums over P's columns, (rows, 4): those of one thread, so that threads exchange nothing."""
    ROWS: gl.constexpr = P.type.shape[0]
    B_C: gl.constexpr = P.type.shape[1]
    return gl.sum(gl.sum(P.reshape([ROWS, B_C // 8, 4, 2]), 1), 2)


@gluon.jit
def weights(S, shift, alpha, l, factor, O_LAYOUT: gl.constexpr):
    """Return P as the left operand of P V, and l with P added.

    FlashAttention-4 computes some of the powers by a polynomial. Here one in eight made the kernel slower on an
    H200: the loop lacks time to issue instructions, and not exponentials.
    """
    P = gl.exp2(S * factor[:, None] - finite(shift)[:, None])
    return operand(P, O_LAYOUT), l * by_row(alpha, l) + partial_sums(P)


@gluon.jit
def operand(P, O_LAYOUT: gl.constexpr):
    """Return P in e4m3 as the left operand of P V, in the threads where it is.

    Of 16 keys a thread has scores 2q, 2q + 1, 8 + 2q and 9 + 2q, q = 0 to 3; for an operand in eight bits it must
    supply four neighbours. So these four become neighbours: in P by renaming its columns, and in V when it is
    quantised: its column 4q + 2h + e is key 8h + 2q + e.
    """
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=O_LAYOUT, k_width=4)
    ROWS: gl.constexpr = P.type.shape[0]
    B_C: gl.constexpr = P.type.shape[1]
    P = P.reshape([ROWS, B_C // 16, 2, 4, 2]).permute((0, 1, 3, 2, 4)).reshape([ROWS, B_C])
    P = gl.convert_layout(P, P_LAYOUT, assert_trivial=True)
    return gl.inline_asm_elementwise(
        "{ .reg .b16 a, b; cvt.rn.satfinite.e4m3x2.f32 a, $2, $1; cvt.rn.satfinite.e4m3x2.f32 b, $4, $3; "
        "mov.b32 $0, {a, b}; }",
        "=r,r,r,r,r", [P], dtype=gl.float8e4nv, is_pure=False, pack=4,
    )  # fmt: skip


@gluon.jit
def rescaled(O_acc, alpha, TWO_LEVEL: gl.constexpr):
    """Return the sum to which P V is added: before both products are issued, as it would separate the two."""
    return O_acc if TWO_LEVEL else O_acc * by_row(pin(alpha), O_acc)


@gluon.jit
def output(P, slot, O_acc, TWO_LEVEL: gl.constexpr):
    """Have the tensor cores begin P V, added to O_acc or, with two levels, to zero."""
    return warpgroup_mma(P, transposed(slot), O_acc, use_acc=not TWO_LEVEL, is_async=True)


@gluon.jit
def added(O_acc, product, alpha, TWO_LEVEL: gl.constexpr):
    """Return O_acc with P V added: with two levels O_acc is rescaled and added to here, in one multiply-add."""
    return O_acc * by_row(alpha, O_acc) + product if TWO_LEVEL else product


@gluon.jit
def store_lse(lse_ptr, q_taken_ptr, at, inside, lse2, scale_log2e):
    """Store lse of rows, computed from its value in base 2, and add back what K's mean took from the scores."""
    taken = gl.load(q_taken_ptr + at, mask=inside, other=0.0)
    gl.store(lse_ptr + at, (lse2 + taken * scale_log2e) * LOG_2, mask=inside)
