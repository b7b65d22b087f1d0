"""The compiler's listings of a kernel in a readable form, the loop inside, and counts of instructions.

A kernel becomes TTGIR (tiles and their layouts). For an NVIDIA GPU that becomes PTX (one thread, unlimited
registers), then SASS (what the GPU runs); for an AMD GPU it becomes AMDGCN (what the GPU runs). Below, `kind` is
"ttgir", "ptx", "sass" or "amdgcn".
"""

import itertools
import re
from typing import NamedTuple


class Instruction(NamedTuple):
    """The forms of an instruction (regular expressions) by kind of listing, and what it does."""

    forms: dict[str, str]
    meaning: str


def _nvidia(ptx, sass, meaning):
    return Instruction({"ptx": ptx, "sass": sass}, meaning)


def _amd(amdgcn, meaning):
    return Instruction({"amdgcn": amdgcn}, meaning)


NEVER = r"(?!)"
OF_NVIDIA = {
    "wgmma": _nvidia(r"\bwgmma\.mma_async", r"\b[HQI]GMMA", "product of tiles by four warps, from shared memory"),
    "wgmma wait": _nvidia(r"\bwgmma\.wait_group", r"\bWARPGROUP\.DEPBAR", "wait for such products"),
    "mma.sync": _nvidia(r"\bmma\.sync", r"\bHMMA", "product of tiles by one warp, tiles in registers"),
    "ldmatrix": _nvidia(r"\bldmatrix", r"\bLDSM", "tile from shared memory to registers"),
    "cp.async": _nvidia(r"\bcp\.async\.c[ag]\b", r"\bLDGSTS", "global to shared memory, in the background"),
    "TMA": _nvidia(r"\bcp\.async\.bulk\.tensor", r"\bUTMA(LDG|STG)", "copy of a whole tile by the copy unit"),
    "TMA add": _nvidia(
        r"\bcp\.reduce\.async\.bulk\.tensor", r"\bUTMAREDG", "whole tile added to global memory by the copy unit"
    ),
    "mbarrier wait": _nvidia(
        r"\bmbarrier\.try_wait", r"\bSYNCS\.PHASECHK", "wait for a barrier's phase; SASS has each twice"
    ),
    "mbarrier arrive": _nvidia(
        r"\bmbarrier\.arrive", r"\bSYNCS\.ARRIVE", "arrival at a barrier, or bytes it must expect"
    ),
    "setmaxnreg": _nvidia(r"\bsetmaxnreg", r"\bUSETMAXREG", "registers that warps give back or ask for"),
    "atomic add": _nvidia(
        r"\b(atom|red)\.global\.\S*\badd\b",
        r"\b(REDG?|ATOMG?)\.\S*\bADD\b",
        "1 to 4 numbers added to global memory",
    ),
    "ex2": _nvidia(r"\bex2\.approx", r"\bMUFU\.EX2", "2 to the power of x"),
    "fma": _nvidia(r"\bfma\.rn\.(\w+\.)?f32", r"\bFFMA", "a * b + c in fp32"),
    "spill": _nvidia(NEVER, r"\b(STL|LDL)\b", "register to local memory, or back"),
}
OF_AMD = {
    "MFMA": _amd(r"\bv_mfma_", "product of tiles by one wavefront, tiles in VGPRs or AGPRs"),
    "global load": _amd(r"\b(buffer|global)_load_", "global memory to VGPRs"),
    "global store": _amd(r"\b(buffer|global)_store_", "VGPRs to global memory"),
    "LDS read": _amd(r"\bds_read", "LDS to VGPRs"),
    "LDS write": _amd(r"\bds_write", "VGPRs to LDS"),
    "barrier": _amd(r"\bs_barrier\b", "wait for all wavefronts of a program"),
    "wait": _amd(r"\bs_waitcnt\b", "wait for loads, or for LDS"),
    "AGPR move": _amd(r"\bv_accvgpr_", "between VGPRs and AGPRs"),
    "atomic add": _amd(r"\b(buffer|global)_atomic_(pk_)?add", "1 or 2 numbers added to global memory"),
    "exp": _amd(r"\bv_exp_f32", "2 to the power of x"),
    "fma": _amd(r"\bv_(pk_)?(fma|fmac|fmamk|fmaak)_f32", "a * b + c in fp32, of 1 or 2 numbers"),
    "spill": _amd(r"\bscratch_(load|store)_", "register to scratch memory, or back"),
}
INSTRUCTIONS = {"ptx": OF_NVIDIA, "sass": OF_NVIDIA, "amdgcn": OF_AMD}  # by kind of listing


def form(kind: str, name: str) -> str:
    """Return the regular expression of an instruction in a kind of listing."""
    return INSTRUCTIONS[kind][name].forms[kind]


# The loop over tiles is known by its products of tiles or, if there are none, by a * b + c or exp.
PRODUCTS = {
    "ttgir": (r"\b(tt\.dot|ttng\.warp_group_dot|ttng\.tc_gen5_mma) ", r"\bmath\.exp"),
    "ptx": (rf"{form('ptx', 'wgmma')}|{form('ptx', 'mma.sync')}", form("ptx", "fma")),
    "sass": (rf"{form('sass', 'wgmma')}|{form('sass', 'mma.sync')}", form("sass", "fma")),
    "amdgcn": (form("amdgcn", "MFMA"), form("amdgcn", "fma")),
}
LABEL = {
    "ptx": re.compile(r"(\$L__BB\w+):"),
    "sass": re.compile(r"(\.L_x_\d+):"),
    "amdgcn": re.compile(r"(\.LBB\w+):"),
}
BRANCH = {
    "ptx": re.compile(r"\bbra\S*\s+(\$L__BB\w+)"),
    "sass": re.compile(r"\bBRA\S*\s.*?(\.L_x_\d+)"),
    "amdgcn": re.compile(r"\bs_c?branch\S*\s+(\.LBB\w+)"),
}

NAME = re.compile(r"(?<=tt\.func public )@\w+")
VALUE = re.compile(r"%[\w.$-]+(?P<made>(?=(?::\d+)? = |: ))?")  # of TTGIR; named after Python's variable
LOCATION = re.compile(r" loc\((?:[^()]|\([^()]*\))*\)")  # nested at most once
SASS = re.compile(r"\s*/\*[0-9a-f]+\*/\s*(.*;)|(\.L_x_\d+:)")
AMDGCN = re.compile(r"(\.LBB\w+:)|\s+([a-z]\w*(?:\s.*)?)$")  # a label, an instruction; not what begins with a dot
DEBUG = re.compile(r"\s*(\.loc|\.file|\.b\d+ |\$L__(tmp|func)|// (begin|end) inline asm)|\s*$")


def readable(kind: str, text: str) -> str:
    """Return a listing from Triton, or for SASS from `nvdisasm -c`, without what only debuggers read."""
    return "\n".join(READERS[kind](text))


def _read_ttgir(text):
    return (LOCATION.sub("", line) for line in text.splitlines() if not line.startswith("#loc"))


def _read_ptx(text):
    code = text.partition("\t.section\t.debug")[0]
    lines = (line.partition("//")[0].rstrip() for line in code.splitlines() if not DEBUG.match(line))
    return (line for line in lines if line)


def _read_sass(text):
    found = filter(None, map(SASS.match, text.splitlines()))
    return (line[2] or "    " + line[1].replace("`(", "").replace(") ;", ";").replace(" ;", ";") for line in found)


def _read_amdgcn(text):
    code = text.partition("\n\t.section")[0]
    found = filter(None, (AMDGCN.match(line.partition(";")[0].rstrip()) for line in code.splitlines()))
    return (line[1] or f"    {line[2].expandtabs()}" for line in found)


READERS = {"ttgir": _read_ttgir, "ptx": _read_ptx, "sass": _read_sass, "amdgcn": _read_amdgcn}


def without_names(text: str) -> str:
    """Return a listing of TTGIR or SASS without names, which only TTGIR has: the kernel's and those of values.

    Values are numbered in the order of their definitions: two loops may each define one of the same name.
    """
    numbers, count = {}, itertools.count()

    def number(found):
        name = found[0]
        if found["made"] is not None or name not in numbers:
            numbers[name] = next(count)
        return f"%{numbers[name]}"

    return VALUE.sub(number, NAME.sub("", text))


def inner_loop(kind: str, text: str) -> str:
    """Return the loop over tiles, "" if there is none; if there are two, with and without a mask, the one without.

    That is the shorter one. Further loops are the same two again, for a path that is rarely taken.
    """
    lines = text.splitlines()
    first, second = PRODUCTS[kind]
    loops = []  # (products, the rest if there are none, from, to)
    for start, stop in _loops_by_indent(lines) if kind == "ttgir" else _loops_by_label(kind, lines):
        loop = "\n".join(lines[start:stop])
        products = _count(first, loop)
        loops.append((products, 0 if products else _count(second, loop), start, stop))
    loops = [a for a in loops if any(a[:2]) and not any(_is_inside(b, a) for b in loops)]
    most = max((loop[:2] for loop in loops), default=(0, 0))
    found = sorted(loop[2:] for loop in loops if loop[:2] == most)[:2]
    start, stop = min(found, key=lambda loop: loop[1] - loop[0], default=(0, 0))
    return "\n".join(lines[start:stop])


def _is_inside(a, b):
    return a != b and any(a[:2]) and b[2] <= a[2] and a[3] <= b[3]


def _loops_by_indent(lines):
    for start, line in enumerate(lines):
        if "scf.for " in line:
            end = " " * (len(line) - len(line.lstrip())) + "}"
            yield start, next(n for n in range(start, len(lines)) if lines[n].startswith(end)) + 1


def _loops_by_label(kind, lines):
    """Yield the start and the end of each loop that a branch closes.

    A long wait continues after the end of the program, in a separate loop, and the branch after it goes back to
    the place of the wait: the code between is not a loop.
    """
    seen, waited = {}, None
    for n, line in enumerate(lines):
        if label := LABEL[kind].match(line):
            seen[label[1]] = n
        elif (branch := BRANCH[kind].search(line)) and branch[1] in seen:
            start = seen[branch[1]]
            if waited != n:
                yield start, n + 1
            found = any(re.search(form("sass", "mbarrier wait"), line) for line in lines[start + 1 : n])
            waited = n + 1 if found and n - start <= 4 else None  # apart from the wait at most a register is set


def counts(kind: str, text: str) -> dict[str, int]:
    """Return how often each of INSTRUCTIONS[kind] occurs in a listing of PTX, SASS or AMDGCN."""
    return {name: _count(form(kind, name), text) for name in INSTRUCTIONS[kind]}


def lines(kind: str, text: str, *names: str) -> str:
    """Return the lines of a listing with one of the named INSTRUCTIONS[kind], or with any, in order."""
    wanted = re.compile("|".join(f"(?:{form(kind, name)})" for name in names or INSTRUCTIONS[kind]))
    return "\n".join(line.strip() for line in text.splitlines() if wanted.search(line))


class WarpRole(NamedTuple):
    """The role of some warps of a program: "producer" copies, "consumer" multiplies.

    given: registers of a thread that its warps request. used: how many its instructions use.
    """

    name: str
    given: int
    used: int


def roles(sass: str) -> list[WarpRole]:
    """Return the roles of a kernel in Gluon, in the order of its SASS; [] if all warps do the same."""
    _, *parts = re.split(r"\bUSETMAXREG\.\S+\s+(?:UP\d+, )?(0x[0-9a-f]+)", sass)
    found = []
    for given, code in zip(parts[::2], parts[1::2], strict=True):
        multiplies, copies = (re.search(form("sass", name), code) for name in ("wgmma", "TMA"))
        if multiplies or copies:
            used = 1 + max(map(int, re.findall(r"\bR(\d+)\b", code)))
            found.append(WarpRole("consumer" if multiplies else "producer", int(given, 16), used))
    return found


def _count(pattern, text):
    return sum(1 for _ in re.finditer(pattern, text))
