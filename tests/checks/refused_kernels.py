"""Kernels that are right in the interpreter and that the compiler refuses, by kind: edits of solutions.

KINDS is {kind: {exercise: (an edit, a part of the refused line, or "" if a launch is refused)}}.
"""

OFFS = "offs = start + tl.arange(0, BLOCK)"
COLUMNS = "offs_n = start + tl.arange(0, B_C)"
ROWS = "offs_m = start + tl.arange(0, B_R)"
GREATEST = "m_new = tl.maximum(m, tl.max(x, axis=0))"
RETURN = "return m, l, O_acc"
WEIGHTS = "tl.exp(S - shift[:, None])"
FULL = "full = tl.maximum(seen_by_all, 0) // B_C * B_C"
LSE = "m + tl.log(tl.where(l == 0.0, 1.0, l))"
STORE = f"    tl.store(lse_ptr + row, {LSE})"
RETURN_DQ = "    return dq * scale"
M, L, O_ACC = (
    'tl.full((B_R,), -float("inf"), tl.float32)',
    "tl.zeros((B_R,), tl.float32)",
    "tl.zeros((B_R, D), tl.float32)",
)
IN_LOOP, IN_BODY = "\\n        ", "\\n    "


def before(line, *new):
    """Return the edit that inserts new lines before a line of a loop."""
    return f"{line} -> {IN_LOOP.join([*new, line])}"


def instead(line, *new, indent=IN_LOOP):
    """Return the edit that replaces a line with new lines."""
    return f"{line} -> {indent.join(new)}"


def returned(*new):
    return instead(RETURN, *new, indent=IN_BODY)


def ended(line, *new):
    """Return the edit that replaces a line with lines that include their indentation."""
    return f"`{line}` -> `" + "\\n".join(new) + "`"


KINDS = {
    "a maximum that begins as a number": {
        "attention": (f'm = {M} -> m = -float("inf")', "for start"),
        "alibi": (f'm = {M} -> m = -float("inf")', "for start"),
        "variant": (f'm = {M} -> m = -float("inf")', "for n"),
    },
    "a sum that begins as a number": {
        "attention": (f"l = {L} -> l = 0.0", "for start"),
        "alibi": (f"O_acc = {O_ACC} -> O_acc = 0.0", "for start"),
        "dkv_loop": ("dk = tl.zeros((B_C, D), tl.float32) -> dk = 0.0", "for start"),
        "dq_loop": (f"dq = {O_ACC} -> dq = 0.0", "for start"),
    },
    "break": {
        "row_lse": (before(OFFS, "if start >= N:", "    break"), "break"),
        "attention": (before(COLUMNS, "if start >= N_k:", "    break"), "break"),
        "dkv_loop": (before(ROWS, "if start >= N_q:", "    break"), "break"),
    },
    "continue": {
        "row_lse": (before(OFFS, "if start < 0:", "    continue"), "continue"),
        "dq_loop": (before(COLUMNS, "if start < 0:", "    continue"), "continue"),
    },
    "a list that grows": {
        "inner_loop": (returned("found = []", "found.append(m)", "return found[0], l, O_acc"), "append"),
        "row_lse": (before(OFFS, "found = []", "found.append(start)"), "append"),
    },
    "a chained comparison": {
        "row_lse": (before(OFFS, "start = start if 0 <= start < N else 0"), "0 <= start"),
        "alibi": (before(COLUMNS, "start = start if 0 <= start < N_k else 0"), "0 <= start"),
    },
    "a name first set in a branch": {
        "attention": (instead("m_old = m", "if start >= 0:", "    m_old = m"), "tl.maximum(m_old"),
        "row_lse": (instead(OFFS, "if start < N:", f"    {OFFS}"), "tl.load"),
    },
    "a return in a loop": {
        "dq_loop": (
            ended(RETURN_DQ, "        if start + B_C >= end:", f"        {RETURN_DQ}", RETURN_DQ),
            "if start",
        ),
        "row_lse": (
            ended(STORE, "        if start + BLOCK >= N:", f"        {STORE}", "            return"),
            "if start",
        ),
    },
    "an else of a loop": {
        "row_lse": (ended(STORE, "    else:", "        m += 0", STORE), "for start"),
    },
    "a loop over a list": {
        "row_lse": (instead(OFFS, "offs = tl.arange(0, BLOCK)", "for n in [start]:", "    offs += n"), "for n"),
    },
    "enumerate": {
        "row_lse": ("in range(0, N, BLOCK) -> in [n for _, n in enumerate(range(0, N, BLOCK))]", "enumerate"),
    },
    "a dict": {
        "inner_loop": (returned('state = {"m": m}', 'return state["m"], l, O_acc'), "state = {"),
        "scale_exp": ("tl.exp(x * scale) -> {1: tl.exp(x * scale)}[1]", "{1:"),
    },
    "try": {
        "row_lse": (before(OFFS, "try:", "    N += 0", "except ValueError:", "    N += 1"), "try"),
    },
    "raise": {
        "row_lse": (before(OFFS, "if N < 0:", '    raise ValueError("N")'), "raise"),
    },
    "del": {
        "row_lse": (instead("m = m_new", "m = m_new", "del x"), "del x"),
    },
    "in": {
        "row_lse": (before(OFFS, "start = 0 if start in (-1, -2) else start"), "in (-1, -2)"),
    },
    "a lambda": {
        "inner_loop": (f"P = {WEIGHTS} -> P = (lambda z: tl.exp(z))(S - shift[:, None])", "lambda"),
        "scale_exp": ("tl.exp(x * scale) -> (lambda z: tl.exp(z))(x * scale)", "lambda"),
    },
    "a walrus": {
        "row_lse": (f"row, {LSE} -> row, (n := {LSE})", ":="),
    },
    "a star": {
        "inner_loop": (returned(f"first, *rest = {RETURN[7:]}", "return first, l, O_acc"), "*rest"),
    },
    "a text": {
        "row_lse": (before(OFFS, 'name = f"{1}"'), "name ="),
    },
    "a function of Python's": {
        "row_lse": (f"{GREATEST} -> m_new = tl.maximum(m, sum([tl.max(x, axis=0)]))", "sum("),
    },
    "two types of a name": {
        "causal_split": (
            instead(FULL, "if i < 1:", f"    {FULL}", "else:", f"    {FULL} * 1.0", indent=IN_BODY),
            "if i",
        ),
    },
    "a product of tiles that share 8 numbers": {
        "alibi": ("B_R=16, B_C=16 -> B_R=16, B_C=8", "tl.dot"),
    },
    "an option that there is not": {
        "add": ("BLOCK=32) -> BLOCK=32, warps=4)", ""),
        "attention": ("num_stages=2 -> stages=2", ""),
    },
    "warps that are no power of two": {
        "add": ("BLOCK=32) -> BLOCK=32, num_warps=3)", ""),
        "attention": ("num_stages=2 -> num_warps=3", ""),
    },
    "more shared memory than there is": {
        "alibi": ("B_R=16, B_C=16 -> B_R=128, B_C=256", ""),
        "attention": ("(32, 32) if Q.dtype == torch.float32 else (64, 64) -> (128, 128)", ""),
        "hopper_attention": ("STAGES=2, CAUSAL -> STAGES=4, CAUSAL", ""),
    },
}
