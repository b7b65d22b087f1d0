"""Wrong answers to the exercises of chapter 09."""

from flashlib.checks.mutants import Mutant

WRONG = {
    "add": [
        ("no mask on the store", "31 elements past the end of out", {"x + y, mask=mask": "x + y"}),
        ("mask with <=", "1 element past the end of out", {"n < N": "n <= N"}),
        ("stride of x ignored", "the stride of x is not used", {"x_ptr + n * stride_x": "x_ptr + n"}),
        ("stride of y ignored", "the stride of y is not used", {"y_ptr + n * stride_y": "y_ptr + n"}),
        ("stride of out ignored", "out is not filled", {"out_ptr + n * stride_out": "out_ptr + n"}),
        (
            "stride of x for y",
            "the stride of x is used for y too",
            {"y_ptr + n * stride_y": "y_ptr + n * stride_x"},
        ),
        ("x twice", "x is added to itself", {"tl.load(y_ptr + n * stride_y": "tl.load(x_ptr + n * stride_x"}),
        ("product", "multiplied", {"x + y,": "x * y,"}),
        ("grid rounds down", "the grid must round up", {"triton.cdiv(N, 32)": "N // 32"}),
        ("program id forgotten", "only the first block is written", {"tl.program_id(0) * BLOCK": "0"}),
        ("program id not times BLOCK", "the blocks overlap", {"tl.program_id(0) * BLOCK": "tl.program_id(0)"}),
        (
            "stores into x",
            "the input x is written to",
            {"tl.store(out_ptr + n * stride_out": "tl.store(x_ptr + n * stride_x"},
        ),
        ("a block of 30", "power of 2", {"BLOCK=32": "BLOCK=30"}),
        (
            "contiguous copies of the inputs, as in the chapter",
            "out is not filled",
            {},
            """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, N, B: tl.constexpr):
    offs = tl.program_id(0) * B + tl.arange(0, B)
    sum_ = tl.load(x_ptr + offs, mask=offs < N) + tl.load(y_ptr + offs, mask=offs < N)
    tl.store(out_ptr + offs, sum_, mask=offs < N)


def my_add(x, y, out):
    kernel[(triton.cdiv(out.numel(), 32),)](x.contiguous(), y.contiguous(), out, out.numel(), B=32)
""",
        ),
        (
            "one program that loops, as in the chapter",
            "the strides of x and y are not used",
            {},
            """
@triton.jit
def kernel(a, b, c, n, B: tl.constexpr):
    for start in range(0, n, B):
        i = start + tl.arange(0, B)
        tl.store(c + i, tl.load(a + i, i < n) + tl.load(b + i, i < n), i < n)


def my_add(x, y, out):
    kernel[(1,)](x, y, out, x.shape[0], 32)
""",
        ),
    ],
    "scale_exp": [
        ("no scale", "the scale is missing", {"tl.exp(x * scale)": "tl.exp(x)"}),
        ("no exp", "the exponential is missing", {"tl.exp(x * scale)": "x * scale"}),
        ("scaled after exp", "the scale comes after the exponential", {"tl.exp(x * scale)": "tl.exp(x) * scale"}),
        ("base 2", "one of 2", {"tl.exp(x * scale)": "tl.exp2(x * scale)"}),
        ("grid rounds down", "round up", {"triton.cdiv(len(x), 32)": "len(x) // 32"}),
        ("same block in all programs", "only the first block", {"tl.program_id(0) * BLOCK": "0"}),
        ("store not masked", "past the end of y", {"tl.exp(x * scale), mask=offs < N": "tl.exp(x * scale)"}),
        ("load far outside", "memory", {"x_ptr + offs, mask=offs < N": "x_ptr + offs * 100000000"}),
        ("writes to x", "input x is written to", {"tl.store(y_ptr": "tl.store(x_ptr"}),
        ("does not compile", "power of 2", {"tl.arange(0, BLOCK)": "tl.arange(0, BLOCK - 2)"}),
        ("does not end", "did not end", {"    scale_exp": "    while True:\n        pass\n    scale_exp"}),
        ("a new tensor", "nothing is written", {"    scale_exp": "    y = torch.empty_like(x)\n    scale_exp"}),
        (
            "two kernels, the scale in the second",
            "the scale comes after the exponential",
            {},
            """
@triton.jit
def exp_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.exp(tl.load(x + i, i < n)), i < n)


@triton.jit
def scale_kernel(y, s, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, s * tl.load(y + i, i < n), i < n)


def my_scale_exp(x, y, scale):
    grid = lambda options: (triton.cdiv(x.numel(), options["BLOCK"]),)
    exp_kernel[grid](x, y, x.numel(), BLOCK=32)
    scale_kernel[grid](y, scale, x.numel(), BLOCK=32)
""",
        ),
    ],
    "causal_softmax": [
        ("other = 0", "hidden scores become 0", {'other=-float("inf")': "other=0.0"}),
        ("no maximum", "the maximum is not subtracted", {"tl.exp(s - tl.max(s, axis=0))": "tl.exp(s)"}),
        ("not causal", "the causal mask is missing", {"mask=offs <= row": "mask=offs < N"}),
        ("no mask", "there is no mask", {', mask=offs <= row, other=-float("inf")': ""}),
        ("strict mask", "its own column", {"offs <= row": "offs < row"}),
        ("upside down", "upside down", {"mask=offs <= row": "mask=(offs >= row) & (offs < N)"}),
        ("no division", "division by the sum is missing", {"p / tl.sum(p, axis=0)": "p"}),
        ("hidden not written", "hidden columns are not written", {"mask=offs < N": "mask=offs <= row"}),
        ("store not masked", "past the end of P", {", mask=offs < N": ""}),
        ("S of stride N", "the rows of S lie", {"row * stride_s": "row * N"}),
        ("P of stride N", "P is not filled", {"row * stride_p": "row * N"}),
        ("one program", "only row 0 is written", {"[(N,)]": "[(1,)]"}),
        ("program id forgotten", "only row 0 is written", {"tl.program_id(0)": "0"}),
        ("block of N", "power of 2", {"triton.next_power_of_2(N)": "N"}),
        (
            "weights set to 0 at the end",
            "the mask comes after the softmax",
            {},
            """
@triton.jit
def kernel(S, P, s_row, p_row, N, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(S + r * s_row + c, mask=c < N, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    y = e / tl.sum(e, 0)
    tl.store(P + r * p_row + c, tl.where(c > r, 0.0, y), mask=c < N)


def my_causal_softmax(S, P):
    kernel[(S.shape[0],)](S, P, *S.stride()[:1], *P.stride()[:1], S.shape[1], B=triton.next_power_of_2(len(S)))
""",
        ),
        (
            "hidden scores in the maximum",
            "hidden scores count in the maximum",
            {},
            """
@triton.jit
def kernel(S, P, s_row, p_row, N, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(S + r * s_row + c, mask=c < N, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0)) * (c <= r)
    tl.store(P + r * p_row + c, e / tl.sum(e, 0), mask=c < N)


def my_causal_softmax(S, P):
    kernel[(S.shape[0],)](S, P, S.stride(0), P.stride(0), S.shape[1], B=triton.next_power_of_2(len(S)))
""",
        ),
    ],
    "row_lse": [
        ("l not rescaled", "l is not rescaled", {"l * tl.exp(m - shift)": "l"}),
        ("alpha upside down", "alpha is upside down", {"tl.exp(m - shift)": "tl.exp(shift - m)"}),
        ("no maximum", "the maximum is not subtracted", {"tl.exp(x - shift)": "tl.exp(x)"}),
        ("log alone", "lse is log(l) alone", {"m + tl.log(": "tl.log("}),
        ("m + l", "lse is m + l", {"tl.log(tl.where(l == 0.0, 1.0, l))": "l"}),
        ("base 2", "to base 2", {"tl.log(": "tl.log2("}),
        ("other = 0", "count as scores of 0", {'other=-float("inf")': "other=0.0"}),
        ("no guard", "a block of -inf gives nan", {'tl.where(m_new == -float("inf"), 0.0, m_new)': "m_new"}),
        (
            "m of the last block",
            "of the last block alone",
            {"tl.maximum(m, tl.max(x, axis=0))": "tl.max(x, axis=0)"},
        ),
        ("m starts at 0", "m starts at 0", {'m = -float("inf")': "m = 0.0"}),
        (
            "last block dropped",
            "shorter block is dropped",
            {"range(0, N, BLOCK)": "range(0, N // BLOCK * BLOCK, BLOCK)"},
        ),
        ("first block only", "only the first block is read", {"range(0, N, BLOCK)": "range(0, BLOCK, BLOCK)"}),
        ("stride N", "the rows of X lie", {"row * stride_x": "row * N"}),
        ("one program", "only lse[0] is written", {"[(X.shape[0],)]": "[(1,)]"}),
        (
            "one block, not online, no maximum",
            "the maximum is not subtracted",
            {},
            """
@triton.jit
def kernel(X, out, stride, N, B: tl.constexpr):
    c = tl.arange(0, B)
    x = tl.load(X + tl.program_id(0) * stride + c, mask=c < N, other=-float("inf"))
    tl.store(out + tl.program_id(0), tl.log(tl.sum(tl.exp(x), 0)))


def my_row_lse(X, lse):
    kernel[X.shape[:1]](X, lse, X.stride(0), X.shape[1], B=triton.next_power_of_2(X.shape[1]))
""",
        ),
        (
            "a row of -inf gives 0",
            "a row of -inf gives 0",
            {"m + tl.log(tl.where(l == 0.0, 1.0, l))": "tl.where(l == 0.0, 0.0, m + tl.log(l))"},
        ),
    ],
}
"""{exercise: [(name, diagnosis, edits of the solution, or a whole answer)]}"""

MUTANTS = [Mutant(exercise, *mutant) for exercise, mutants in WRONG.items() for mutant in mutants]
