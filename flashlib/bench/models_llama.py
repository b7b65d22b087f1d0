"""The model of `bench.models`, and the names under which transformers finds the compared attentions."""

from collections.abc import Callable
from typing import Any

import torch

from flashlib.bench.common import harness

SIZES = {
    "num_hidden_layers": 16, "hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 16,
    "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 32768, "max_position_embeddings": 32768,
}  # fmt: skip
ENGINES = {"eager": "eager", "sdpa": "sdpa", "flex": "flex_attention", "ours": "course", "hopper": "hopper"}
REFERENCE = "exact_of_bench"


def register() -> None:
    """Register our two engines with transformers, and an attention whose memory grows only with N, for fp32."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    from flashlib.interop import transformers as course
    from flashlib.kernels import hopper

    course.register("course")
    course.register("hopper", hopper.attention)
    AttentionInterface.register(REFERENCE, _exact)
    AttentionMaskInterface.register(REFERENCE, sdpa_mask)


def _exact(module, query, key, value, attention_mask, scaling=None, **_):
    if attention_mask is not None:
        raise ValueError("the reference is causal, and a mask is given")
    K, V = (X.repeat_interleave(query.shape[1] // X.shape[1], dim=1) for X in (key, value))
    O = torch.nn.functional.scaled_dot_product_attention(query, K, V, is_causal=True, scale=scaling)
    return O.transpose(1, 2).contiguous(), None


def llama(device: str, **sizes: int) -> Any:
    """Return transformers' Llama with random bf16 weights, the same ones every time. sizes: as in its config."""
    from transformers import AutoModelForCausalLM, LlamaConfig

    config = LlamaConfig(
        **SIZES | sizes, tie_word_embeddings=True, bos_token_id=None, eos_token_id=None, pad_token_id=None
    )
    torch.manual_seed(0)
    with torch.device(device):
        return AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()


def tokens(model: Any, N: int, B: int = 1) -> torch.Tensor:
    """Return the ids of B sequences of N tokens, (B, N), the same ones every time."""
    g = torch.Generator().manual_seed(N)
    return torch.randint(model.config.vocab_size, (B, N), generator=g).to(model.device)


def attempt(run: Callable) -> tuple[Any, str | None]:
    """Return (result of run(), None), or (None, why it failed); GPU memory that it took is freed."""
    found = reason = None
    try:
        found = run()
    except Exception as error:  # whatever a compiler, a driver or a library raises
        reason = harness.reason(error)
    if reason:  # once the error is gone, and with it the objects that its frames held
        give_back()
    return found, reason


def give_back() -> None:
    """Free the GPU memory that torch caches."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
