"""Wrong answers to the exercises of chapter 06."""

from flashlib.checks.mutants import Mutant

MUTANTS = [
    Mutant("fa2", "l not rescaled", "l is not rescaled", {"l = alpha * l +": "l = l +"}),
    Mutant("fa2", "O_acc not rescaled", "O_acc is not rescaled", {"alpha[:, None] * O_acc": "O_acc"}),
    Mutant("fa2", "no final division", "final division", {"O_acc / np.where(l == 0, 1, l)[:, None]": "O_acc"}),
    Mutant("fa2", "no guard of m", "-inf - (-inf)", {"np.where(m == -np.inf, 0, m)": "m"}),
    Mutant("fa2", "no guard of l", "a row that sees no key", {"np.where(l == 0, 1, l)": "l"}),
    Mutant("fa2", "no scale", "the scale is missing", {" * scale\n": "\n"}),
    Mutant("fa2", "top-left mask", "aligned top left", {"past = len(K) - len(Q)": "past = 0"}),
    Mutant("fa2", "hidden tiles computed", "hides all of it", {"if causal and is_hidden(rows, cols, past)": "if False"}),
    Mutant("fa2", "tail dropped", "last, shorter block of keys", {"blocks(len(K), B_c)": "blocks(len(K) // B_c * B_c, B_c)"}),
    Mutant("fa2", "tile's own maximum", "of this tile alone", {"np.maximum(m, S_ij.max(axis=1))": "S_ij.max(axis=1)"}),
]
