"""Work that the warps of the Hopper forward may skip, in PTX: Gluon can branch only for all warps of a role.

The threads of a warp vote. A thread's numbers come in quadruples: two neighbours in each of two rows.
"""

from triton import constexpr_function
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@constexpr_function
def maxima(n: int) -> str:
    """Return PTX for the maxima of n quadruples.

    They are compared as integers, of which Hopper takes three in an instruction, and of floats two. Integers order
    floats correctly if the largest is positive. If that is not so in all rows of a warp, the warp compares floats.
    """

    def compared(kind):
        return (f"max.{kind} x{at % 4}, x{at % 4}, ${at + 4};" for at in range(4, 4 * n))

    return f"""{{
        .reg .pred negative;
        .reg .b32 x0, x1, x2, x3, row, other;
        {" ".join(f"mov.b32 x{at}, ${at + 4};" for at in range(4))}
        {" ".join(compared("s32"))}
        max.s32 row, x0, x1;
        max.s32 other, x2, x3;
        min.s32 row, row, other;
        setp.lt.s32 negative, row, 0;
        vote.sync.any.pred negative, negative, 0xffffffff;
        @!negative bra.uni done;
        {" ".join(f"mov.b32 x{at}, ${at + 4};" for at in range(4))}
        {" ".join(compared("f32"))}
    done:
        {" ".join(f"mov.b32 ${at}, x{at};" for at in range(4))}
    }}"""


@constexpr_function
def quadruples(n: int) -> str:
    """Return the constraints of `maxima`."""
    return ",".join(["=&r"] * 4 + ["r"] * (4 * n))


@gluon.jit
def largest(parts, N: gl.constexpr):
    """Return the largest of N tiles (rows, 8) at each place."""
    return gl.inline_asm_elementwise(maxima(N), quadruples(N), parts, dtype=gl.float32, is_pure=True, pack=4)


@constexpr_function
def multiply(n: int) -> str:
    """Return PTX that multiplies a thread's n numbers by alpha, unless alpha is 1 in all rows of the warp."""
    first, second = f"${2 * n}", f"${2 * n + 2}"
    products = (f"mul.f32 ${at}, ${at}, {second if at % 4 > 1 else first};" for at in range(n))
    return f"""{{
        .reg .pred needed;
        setp.neu.f32 needed, {first}, 0f3F800000;  // 1.0
        setp.neu.or.f32 needed, {second}, 0f3F800000, needed;
        vote.sync.any.pred needed, needed, 0xffffffff;
        @!needed bra.uni done;
        {" ".join(products)}
    done:
    }}"""


@constexpr_function
def in_place(n: int) -> str:
    """Return the constraints of `multiply`: n results, n numbers in the same registers, and their factors."""
    return ",".join(["=f"] * n + [str(at) for at in range(n)] + ["f"] * n)


@gluon.jit
def multiplied(O_acc, alpha):
    """Return O_acc times alpha, (rows, 1)."""
    N: gl.constexpr = O_acc.type.shape[1] // 2
    both = [O_acc, alpha]
    return gl.inline_asm_elementwise(multiply(N), in_place(N), both, dtype=gl.float32, is_pure=False, pack=N)
