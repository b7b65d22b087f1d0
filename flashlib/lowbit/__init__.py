"""Eight-bit numbers, and what they do to attention: in plain NumPy, on the tiles of `tiled`.

    formats      e4m3, e5m2, int8 (and fp16, bf16) as sets of numbers; `rounded` to the nearest of them
    scales       what numbers are divided by first: one for a tensor, a head, a block of rows, a row, a channel
    rotation     Hadamard's matrix and random signs: an outlier is spread over all channels, S stays
    sums         how Hopper's tensor cores add: 13 bits of a sum; `product`, `running`
    recipe       a Recipe says what is rounded and how; EXACT, PLAIN, CAREFUL, INT8, OUTPUT_TOO
    attention    `attention`, the pass that quantises (`prepared`) and the loop over tiles (`steps`)
    errors       `error` against fp64, and `by_cause`
    core         a TensorCore that rounds what it multiplies, all of it or one cause of error alone
    trials       four Trials that plain attention in eight bits fails

Source: Micikevicius and others, FP8 Formats for Deep Learning (2022); Shah and others, FlashAttention-3 (2024),
section 3.3; Zhang and others, SageAttention (2024) for K minus its mean.
"""

from flashlib.lowbit import sums
from flashlib.lowbit.attention import PreparedInputs, attention, output, prepared, steps
from flashlib.lowbit.core import TensorCore
from flashlib.lowbit.errors import by_cause, error, exact
from flashlib.lowbit.formats import FORMATS, Format, decoded, encoded, numbers, rounded
from flashlib.lowbit.recipe import CAREFUL, CAUSE_NAMES, CAUSES, EXACT, INT8, OUTPUT_TOO, PLAIN, Recipe, alone
from flashlib.lowbit.rotation import hadamard, rotated, signs
from flashlib.lowbit.scales import SHARES, Quantised, quantised, scales
from flashlib.lowbit.trials import Trial, trials

__all__ = [
    "CAREFUL", "CAUSES", "CAUSE_NAMES", "EXACT", "FORMATS", "INT8", "OUTPUT_TOO", "PLAIN", "SHARES", "Format",
    "PreparedInputs", "Quantised", "Recipe", "TensorCore", "Trial", "alone", "attention", "by_cause", "decoded",
    "encoded", "error", "exact", "hadamard", "numbers", "output", "prepared", "quantised", "rotated", "rounded",
    "scales", "signs", "steps", "sums", "trials",
]  # fmt: skip
