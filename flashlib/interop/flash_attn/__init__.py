"""The functions of the package flash_attn (FlashAttention 2) with our kernels, and a module that replaces it.

Arguments, defaults, layouts (B, N, H, d) and results are those of flash_attn 2.8.3, and are documented there.
`stand_in()` makes `import flash_attn` find this module, for code that imports the package:

    from flashlib.interop import flash_attn

    flash_attn.stand_in()

What differs:

    tensors     fp32 too, and on the CPU where kernels are interpreted; V may have another head dimension; pages of
                any power of two, and left padding with pages
    gradients   of the log-sum-exp too, and through pages
    order       with torch.use_deterministic_algorithms(True) the backward pass is deterministic, asked or not
    slopes      the log-sum-exp is of scores with -slope * |i + N_k - N_q - j|, as documented; the package leaves
                out what is the same for all of a causal row
    dropout     which weights are dropped is not what the package would draw from the same seed; and a soft cap may
                be given, too
    S_dmask     made by torch, outside of the kernel, and all of a row has one maximum
    kernels     on a Hopper GPU its own compute sequences of equal length where they are faster, which
                `kernels.chosen` says and `stand_in(portable=True)` forbids
"""

import sys

from flashlib.interop.flash_attn import bert_padding, dense
from flashlib.interop.flash_attn.arguments import check_bools
from flashlib.interop.flash_attn.cache import flash_attn_with_kvcache
from flashlib.interop.flash_attn.dense import flash_attn_func, flash_attn_kvpacked_func, flash_attn_qkvpacked_func
from flashlib.interop.flash_attn.packs import (
    flash_attn_varlen_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
)
from flashlib.interop.flash_attn.probabilities import _get_block_size_n

__version__ = "2.8.3"  # of the interface
__all__ = [
    "_get_block_size_n", "flash_attn_func", "flash_attn_kvpacked_func", "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func", "flash_attn_varlen_kvpacked_func", "flash_attn_varlen_qkvpacked_func",
    "bert_padding", "flash_attn_with_kvcache", "stand_in",
]  # fmt: skip


def stand_in(*, portable: bool = False) -> None:
    """Make `import flash_attn` find this module in this process; raise RuntimeError if another one is loaded.

    portable: as in `kernels.attention`, for all functions here, until the next call.
    Only the functions of the package and the main four of flash_attn.bert_padding are here. flash_attn.layers,
    with its rotary embedding, .losses, .models, .modules and .ops are missing: importing one of them raises
    ModuleNotFoundError. So are private names of the package that its newest tests call, _flash_attn_varlen_forward
    and flash_attn_gpu: ImportError.
    """
    check_bools(portable=portable)
    dense.PORTABLE = portable
    ours = sys.modules[__name__]
    names = {"flash_attn": ours, "flash_attn.flash_attn_interface": ours, "flash_attn.bert_padding": bert_padding}
    for name, module in names.items():
        if sys.modules.get(name, module) is not module:
            raise RuntimeError(f"{name} is imported already: call stand_in() before anything imports it")
    sys.modules.update(names)
