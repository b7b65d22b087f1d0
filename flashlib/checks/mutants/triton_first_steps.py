"""Wrong answers to the exercises of chapter 09."""

from flashlib.checks.mutants import Mutant

MUTANTS = [
    Mutant("scale_exp", "no scale", "the scale is missing", {"tl.exp(x * scale)": "tl.exp(x)"}),
    Mutant("scale_exp", "no exp", "the exponential is missing", {"tl.exp(x * scale)": "x * scale"}),
    Mutant("scale_exp", "scaled after exp", "after the exponential", {"tl.exp(x * scale)": "tl.exp(x) * scale"}),
    Mutant("scale_exp", "grid rounds down", "round up", {"triton.cdiv(len(x), 32)": "len(x) // 32"}),
    Mutant("scale_exp", "same block in all programs", "only the first block", {"tl.program_id(0) * BLOCK": "0"}),
    Mutant("scale_exp", "store not masked", "outside y", {"tl.exp(x * scale), mask=offs < N": "tl.exp(x * scale)"}),
    Mutant("scale_exp", "load far outside", "SIGSEGV", {"x_ptr + offs, mask=offs < N": "x_ptr + offs * 100000000"}),
    Mutant("scale_exp", "writes to x", "input x is written to", {"tl.store(y_ptr": "tl.store(x_ptr"}),
    Mutant("scale_exp", "does not compile", "raises", {"tl.arange(0, BLOCK)": "tl.arange(0, BLOCK - 2)"}),
    Mutant("scale_exp", "does not end", "did not end", {"    x = tl": "    while True:\n        offs += 0\n    x = tl"}),
]
