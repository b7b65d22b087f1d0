"""Registers an engine with transformers under a name."""

import contextlib
from collections.abc import Callable, Iterable, Iterator

from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from flashlib.interop.transformers import attend
from flashlib.interop.transformers.call_mask import mask_of_call
from flashlib.interop.transformers.engines import engine_of


def register(
    name: str = "course", engine: str | Callable = "kernels", *, tables: bool = False, accept: Iterable[str] = ()
) -> str:
    """Register an engine and its mask function for all models; return the name, for attn_implementation.

    engine: "kernels" (Triton; interpreted without a GPU; on a Hopper GPU its own where they are faster, which
    "portable" forbids), "tiles" (NumPy), "torch_ref", or a function that is
    called like flashlib.torch_ref.attention. tables: make masks as N_q x N_k tables, for a model that looks into
    its mask. accept: names of further arguments of models that an attention need not handle. Raises TypeError or
    ValueError for anything else, and for names that mean something else to transformers.
    """
    _check_name(name)
    AttentionInterface.register(name, attend.attention(engine_of(engine), frozenset(accept)))
    AttentionMaskInterface.register(name, sdpa_mask if tables else mask_of_call)
    return name


@contextlib.contextmanager
def standing_in(engine: str | Callable = "kernels", *, accept: Iterable[str] = ()) -> Iterator[str]:
    """Replace "sdpa" by an engine within a `with`; return that name.

    For code that accepts only transformers' own names, such as continuous batching (generate_batch). Its masks are
    tables.
    """
    before = ALL_ATTENTION_FUNCTIONS["sdpa"]
    AttentionInterface.register("sdpa", attend.attention(engine_of(engine), frozenset(accept)))
    try:
        yield "sdpa"
    finally:
        AttentionInterface.register("sdpa", before)


def _check_name(name):
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"name is {name!r}; pass one such as 'course': with / transformers asks the Hub for it")
    if "flash" in name or name in ("eager", "sdpa", "flex_attention"):
        raise ValueError(
            f"name is {name!r}, and transformers takes it for one of its own, with 'flash' in it too: pass "
            "another, such as 'course'"
        )
