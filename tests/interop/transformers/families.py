"""Families of models of transformers, as tiny random ones: each calls attention in its own way."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import transformers as T
from torch.overrides import TorchFunctionMode
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

N = 37  # tokens, ragged for every tile


class Family(NamedTuple):
    """A class of models with its config, and a batch of inputs: what of its outputs is compared, `valid`."""

    model: type
    config: Callable
    inputs: dict[str, torch.Tensor]
    valid: torch.Tensor | None = None

    def build(self, attention: str, **changes: Any) -> torch.nn.Module:
        """Return a model of random weights, the same each time."""
        torch.manual_seed(0)
        config = self.config(**changes)
        config._experts_implementation = "eager"  # the other one knows no float64
        return self.model._from_config(config, attn_implementation=attention).eval()

    def output(self, model: torch.nn.Module, **others: Any) -> torch.Tensor:
        """Return the logits, or the last hidden state, where they are no padding."""
        given = {
            name: X.to(model.device) if torch.is_tensor(X) else X for name, X in (self.inputs | others).items()
        }
        found = model(**given)
        X = (found.logits if "logits" in found else found.last_hidden_state).cpu()
        return X if self.valid is None else X[self.valid]


def _random(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


def _ids(N):
    return torch.randint(3, 90, (2, N), generator=torch.Generator().manual_seed(0))


def _config(of, **fixed):
    return lambda **changes: of(**(fixed | changes))


SIZES = dict(
    vocab_size=96, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
    max_position_embeddings=256,
)  # fmt: skip
DECODER = dict(SIZES, num_key_value_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=2)
WIDE = dict(DECODER, head_dim=16)
EXPERTS = dict(WIDE, num_local_experts=2, num_experts_per_tok=1)
CODER = dict(vocab_size=96, d_model=64, pad_token_id=0, decoder_start_token_id=1)
MLA = dict(
    DECODER, num_key_value_heads=4, q_lora_rank=32, kv_lora_rank=16, qk_rope_head_dim=16, qk_nope_head_dim=16,
    v_head_dim=24, n_routed_experts=4, num_experts_per_tok=2, n_group=2, topk_group=1, first_k_dense_replace=2,
    moe_intermediate_size=32,
)  # fmt: skip
WHISPER = dict(
    CODER, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
    encoder_ffn_dim=96, decoder_ffn_dim=96, num_mel_bins=20, max_source_positions=50, max_target_positions=64,
    bos_token_id=1, eos_token_id=2,
)  # fmt: skip
SOME_SLIDE = ["sliding_attention", "full_attention"]
THERE = torch.arange(N) < torch.tensor([[N], [25]])
TEXT = {"input_ids": _ids(N)}
PADDED = {"input_ids": _ids(N), "attention_mask": THERE.long()}
SOUND = {"input_features": _random(2, 20, 100), "decoder_input_ids": _ids(11)}

FAMILIES = {
    "llama": Family(T.LlamaForCausalLM, _config(T.LlamaConfig, **DECODER), TEXT),
    "mistral": Family(T.MistralForCausalLM, _config(T.MistralConfig, **DECODER, sliding_window=16), TEXT),
    "qwen3": Family(T.Qwen3ForCausalLM, _config(T.Qwen3Config, **WIDE), TEXT),
    "gemma2": Family(
        T.Gemma2ForCausalLM,
        _config(
            T.Gemma2Config, **WIDE, sliding_window=16, attn_logit_softcapping=5.0, query_pre_attn_scalar=16,
        ),
        TEXT,
    ),
    "gemma3": Family(
        T.Gemma3ForCausalLM,
        _config(T.Gemma3TextConfig, **WIDE, sliding_window=16, query_pre_attn_scalar=16, layer_types=SOME_SLIDE),
        TEXT,
    ),
    "gpt_oss": Family(
        T.GptOssForCausalLM,
        _config(
            T.GptOssConfig, **EXPERTS, sliding_window=16,
            rope_parameters={"rope_type": "default", "rope_theta": 1e4},
        ),
        TEXT,
    ),
    "llama4": Family(
        T.Llama4ForCausalLM,
        _config(T.Llama4TextConfig, **EXPERTS, attention_chunk_size=16, intermediate_size_mlp=96),
        TEXT,
    ),
    "deepseek_v3": Family(T.DeepseekV3ForCausalLM, _config(T.DeepseekV3Config, **MLA), TEXT),
    "gpt2": Family(
        T.GPT2LMHeadModel,
        _config(
            T.GPT2Config, vocab_size=96, n_embd=64, n_layer=2, n_head=4, n_positions=256, bos_token_id=1,
            eos_token_id=2, attn_pdrop=0.0,
        ),
        TEXT,
    ),
    "bert": Family(T.BertModel, _config(T.BertConfig, **SIZES), PADDED, THERE),
    "modernbert": Family(
        T.ModernBertModel,
        _config(
            T.ModernBertConfig, **SIZES, local_attention=16, global_attn_every_n_layers=2, pad_token_id=0,
            cls_token_id=1, sep_token_id=2, bos_token_id=1, eos_token_id=2,
        ),
        PADDED,
        THERE,
    ),
    "vit": Family(
        T.ViTModel,
        _config(
            T.ViTConfig, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
            image_size=32, patch_size=8,
        ),
        {"pixel_values": _random(2, 3, 32, 32)},
    ),
    "whisper": Family(T.WhisperForConditionalGeneration, _config(T.WhisperConfig, **WHISPER), SOUND),
    "t5": Family(
        T.T5ForConditionalGeneration,
        _config(T.T5Config, **CODER, d_kv=16, d_ff=96, num_layers=1, num_heads=4),
        {"input_ids": _ids(N), "decoder_input_ids": _ids(11)},
    ),
}  # fmt: skip


class InDouble(TorchFunctionMode):
    """Let a model of float64 compute in float64 where its code asks for float32."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.float:
            return args[0].double()
        wide = {torch.float32: torch.float64, torch.float: torch.float64}
        args = [wide.get(x, x) if isinstance(x, torch.dtype) else x for x in args]
        given = {k: wide.get(x, x) if isinstance(x, torch.dtype) else x for k, x in (kwargs or {}).items()}
        return function(*args, **given)


def exact(family: Family, of: Callable) -> Any:
    """Return of(a model whose every number is of float64), and whose attention is the definition."""
    with InDouble():
        return of(family.build("exact").double())


def inputs_in_double(family: Family) -> Family:
    """Return the family with inputs of float64, where they are floating."""
    return family._replace(
        inputs={name: X.double() if X.is_floating_point() else X for name, X in family.inputs.items()}
    )


def _definition(
    module, query, key, value, attention_mask, scaling=None, softcap=None, s_aux=None, position_bias=None, **_
):
    """Attention as it is defined: all scores, one softmax. Rows that see nothing are padding: all is finite."""
    key, value = (X.repeat_interleave(query.shape[1] // X.shape[1], 1) for X in (key, value))
    S = query @ key.mT * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    S = S if softcap is None else softcap * torch.tanh(S / softcap)
    S = S if position_bias is None else S + position_bias
    S = S if attention_mask is None else S.masked_fill(attention_mask < -1, torch.finfo(S.dtype).min)
    if s_aux is not None:
        S = torch.cat([S, s_aux[:, None, None].expand(*S.shape[:3], 1)], -1)
    P = S.softmax(-1)[..., : key.shape[2]]
    return (P @ value).transpose(1, 2), None


AttentionInterface.register("exact", _definition)
AttentionMaskInterface.register("exact", eager_mask)
