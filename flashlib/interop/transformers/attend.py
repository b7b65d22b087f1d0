"""An engine in the form that transformers calls: it honours each argument, or refuses it before any work."""

from collections.abc import Callable
from typing import Any

import torch
from transformers.utils.output_capturing import _active_collector  # not all models pass output_attentions on

from flashlib import masks
from flashlib import sink as sinks
from flashlib.inputs import resolve_scale
from flashlib.interop.transformers import call_mask
from flashlib.interop.transformers.call_mask import Hides, Seen, capped
from flashlib.interop.transformers.engines import by_kernels, taken_by
from flashlib.interop.transformers.new_tokens import of_new, takes_new
from flashlib.types import Attention

# Arguments that models pass to an attention and that it need not handle, and why.
ANSWERED = {
    "position_ids": "Q and K are turned, and packs are in the mask",
    "cache_position": "it is in the mask",
    "use_cache": "K and V have what was kept",
    "output_hidden_states": "the model's",
    "output_router_logits": "the model's",
    "return_dict": "the model's",
    "num_items_in_batch": "the loss's",
    "labels": "the loss's",
    "logits_to_keep": "the model's",
    "deterministic": "all engines are",
    "max_length_q": "cu_seq_lens_q says it",
    "max_length_k": "cu_seq_lens_k says it",
    "logits_indices": "continuous batching's",
    "logits_processor_args": "continuous batching's",
    "read_index": "continuous batching's: K and V have been read",
    "write_index": "continuous batching's: K and V have been written",
}
REFUSED = {
    "output_attentions": "no P is stored: load the model with attn_implementation='eager' to look at P",
    "head_mask": "no head is scaled: multiply the model's weights",
    "block_table": "pages are read by flashlib.kernels.decode: leave max_blocks_per_request at 0",
    "seq_idx": "pass position_ids that begin again at 0 in each sequence, or cu_seq_lens_q and cu_seq_lens_k",
}


def attention(engine: Callable, accept: frozenset[str] = frozenset()) -> Callable:
    """Return an engine in the form of AttentionInterface. accept: names of arguments that it need not handle."""
    takes = taken_by(engine)
    direct = takes is None or takes >= {"causal", "scale"}  # the common case, kept cheap for the CPU

    def attend(
        module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
        attention_mask: Any, dropout: float = 0.0, scaling: float | None = None, is_causal: bool | None = None,
        sliding_window: int | None = None, softcap: float | None = None, s_aux: torch.Tensor | None = None,
        position_bias: torch.Tensor | None = None, cu_seq_lens_q: torch.Tensor | None = None,
        cu_seq_lens_k: torch.Tensor | None = None, **others: Any,
    ) -> tuple[torch.Tensor, None]:  # fmt: skip
        if is_causal is None:
            is_causal = getattr(module, "is_causal", True)
        packs = None if cu_seq_lens_q is None and cu_seq_lens_k is None else (cu_seq_lens_q, cu_seq_lens_k)
        refuse({name: X for name, X in others.items() if name not in accept})
        plain = softcap is None and s_aux is None and packs is None and position_bias is None
        plain = plain and not dropout and isinstance(attention_mask, Seen)
        traced = torch.compiler.is_compiling()
        if plain and attention_mask.causal and (engine is by_kernels if traced else direct):
            _check(attention_mask, query, key)
            query, key, value = _as_autocast(query, key, value)
            O = engine(query, key, value, causal=True, scale=scaling)[0]
        elif plain and engine is by_kernels and attention_mask.new is not None and takes_new(query, key, value):
            _check(attention_mask, query, key)
            new, scale = attention_mask.new, resolve_scale(scaling, query.shape[-1])
            given = traced or attention_mask.padded  # a bias costs every call some time
            O = of_new(query, key, value, new.lengths, new.padding if given else None, scale)
        else:
            O = _untraced(
                engine, takes, query, key, value, attention_mask, scaling, bool(is_causal), sliding_window,
                softcap, s_aux, position_bias, packs, dropout,
            )  # fmt: skip
        return O.transpose(1, 2).contiguous(), None

    return attend


def refuse(others: dict[str, Any]) -> None:
    """Raise ValueError or TypeError, with an explanation, for what no engine supports."""
    if any("attentions" in name for name in _active_collector.get() or ()):
        raise ValueError(f"output_attentions is given: {REFUSED['output_attentions']}")
    for name, X in others.items():
        if X is None or X is False or name in ANSWERED:
            continue
        if name in REFUSED:
            raise ValueError(f"{name} is given: {REFUSED[name]}")
        raise TypeError(
            f"the model gives {name} to its attention, and flashlib does not know what it asks for: if it is "
            f"nothing, pass accept={{{name!r}}} to register; else use attn_implementation='eager'"
        )


@torch.compiler.disable  # between two graphs, as torch.compile cannot trace a mask
def _untraced(
    engine, takes, Q, K, V, mask, scale, causal, sliding_window, softcap, sink, bias, packs, dropout
) -> torch.Tensor:  # fmt: skip
    Q, K, V = _as_autocast(Q, K, V)
    B, _, N_q, _ = Q.shape
    if isinstance(mask, torch.Tensor):
        mask, added = call_mask.of_table(mask, B, N_q, K.shape[2])
        if added is not None:
            bias = added if bias is None else bias + added
        packs = None  # they are part of the table
    if mask is None:
        hides = _said_by_call(causal, sliding_window, N_q, K.shape[2])
        hides = hides if softcap is None else capped(hides, softcap)
    else:
        _check(mask, Q, K)
        hides = mask.hides(softcap)
    if packs is not None:
        hides = _packed(hides, packs, B, N_q)
    if bias is not None:
        bias = bias[..., : hides.keys]
    return _called(engine, takes, Q, K, V, hides, scale, sink, bias, dropout).O


def _as_autocast(*tensors):
    """Return tensors in the dtype of autocast, like sdpa; K may have a different dtype than V."""
    device = tensors[0].device.type
    if not torch.is_autocast_enabled(device):
        return tensors
    return [X.to(torch.get_autocast_dtype(device)) for X in tensors]


def _said_by_call(causal, sliding_window, N_q, N_k):
    """Return what is hidden if the model made no mask: what the arguments say, interpreted as by sdpa.

    More keys than queries means the first step with a static cache, whose remaining keys are not written yet.
    """
    causal = causal and N_q > 1
    keys = N_q if causal and N_k > N_q else N_k
    if sliding_window is None:
        return Hides(None, causal, keys)
    return Hides(masks.window(sliding_window - 1, 0 if causal else sliding_window - 1), False, keys)


def _check(mask, Q, K):
    if not isinstance(mask, Seen):
        raise TypeError(f"the mask is of type {type(mask).__name__}; pass None or a tensor of 4 axes")
    given, expected = (len(Q), Q.shape[2], K.shape[2]), mask.sizes
    if given != expected:
        raise ValueError(
            f"the mask was made for B, N_q, N_k = {expected}, and there are {given}: this model changes keys "
            "after its mask was made; use attn_implementation='eager'"
        )


def _packed(hides, packs, B, N_q):
    """Return what is hidden if sequences are also packed: as documents, from their starts among B * N tokens."""
    if any(X is None for X in packs) or not torch.equal(*packs):
        raise ValueError(
            "cu_seq_lens_q and cu_seq_lens_k differ; packs of as many keys as queries are accepted: call "
            "flashlib.kernels.varlen.attention for others"
        )
    begins = packs[0].tolist()
    if N_q != hides.keys or not set(range(0, B * N_q + 1, max(N_q, 1))) <= set(begins):
        raise ValueError(
            f"cu_seq_lens_q is {begins!r:.60}, and there are {B} rows of {N_q} queries and {hides.keys} keys: "
            "each row must begin and end with a sequence"
        )
    ids = torch.arange(len(begins) - 1).repeat_interleave(packs[0].diff().cpu()).view(B, N_q)
    mask = masks.documents(ids.numpy())
    if hides.causal:
        mask = masks.causal() & mask
    return hides._replace(mask=mask if hides.mask is None else hides.mask & mask, causal=False)


def _called(engine, takes, Q, K, V, hides, scale, sink, bias, dropout):
    given = {"causal": hides.causal, "scale": scale}
    if dropout:
        if takes is not None and "dropout" not in takes:
            raise ValueError(
                f"dropout is {dropout}, and this engine has none: register 'kernels', call model.eval(), or set "
                "the attention dropout of the model's config to 0"
            )
        given["dropout"] = float(dropout)
    if bias is not None and takes is not None and "bias" in takes:
        given["bias"] = bias
    elif bias is not None:
        added = masks.bias(bias)
        hides = hides._replace(mask=added if hides.mask is None else hides.mask & added)
    if takes is not None and "keys" in takes:
        given["keys"] = hides.keys
    else:
        K, V = (X[:, :, : hides.keys] for X in (K, V))
    if hides.mask is not None:
        given["mask"] = hides.mask
    if sink is not None and takes is not None and "sink" in takes:
        given["sink"] = sink
    if takes is not None and (missing := given.keys() - takes):
        raise TypeError(
            f"your engine takes {', '.join(sorted(takes))}, and this model needs {', '.join(sorted(missing))} "
            "too: take it, as flashlib.torch_ref.attention does"
        )
    found = Attention(*engine(Q, K, V, **given))
    return found if sink is None or "sink" in given else sinks.add(found, sink)
