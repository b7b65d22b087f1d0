"""Which versions of transformers were tried, and what their interface of attention asks for."""

import importlib.metadata
import warnings

TRIED = ("5.24.0",)

# What an attention of transformers may be given by name, as its own do, and what its masks are made from. Tests
# compare both with the version that is installed: what is new there is what may be missing here.
ATTENTION = frozenset({
    "module", "query", "key", "value", "attention_mask", "dropout", "scaling", "sliding_window", "softcap",
    "is_causal", "s_aux", "position_bias", "kwargs",
})  # fmt: skip
MASK = frozenset({
    "batch_size", "q_length", "kv_length", "q_offset", "kv_offset", "mask_function", "attention_mask",
    "local_size", "allow_is_causal_skip", "allow_is_bidirectional_skip", "use_vmap", "device", "dtype", "config",
    "kwargs",
})  # fmt: skip
MODELS = frozenset({
    "num_items_in_batch", "output_hidden_states", "output_attentions", "output_router_logits", "cu_seq_lens_q",
    "cu_seq_lens_k", "max_length_q", "max_length_k", "position_ids", "is_causal", "seq_idx",
})  # fmt: skip


def warn() -> None:
    """Say in one sentence that this version of transformers was not tried, if it was not."""
    try:
        version = importlib.metadata.version("transformers")
    except importlib.metadata.PackageNotFoundError:
        raise ImportError("transformers is not installed: run make models") from None
    if version not in TRIED:
        warnings.warn(
            f"flashlib's attention was tried with transformers {', '.join(TRIED)}, and this is {version}: compare "
            "a model's logits with those of eager once",
            stacklevel=3,
        )
