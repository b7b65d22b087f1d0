"""Small models of eight families with random weights, and what they compute with a given attention.

Two are encoders, one of images and one of text that is padded on the right. Six are decoders, and two of these are
padded on the left, as `generate` pads the prompts of a batch. Texts have 37 tokens, more than windows and chunks
have keys. An attention is chosen by its name in `transformers.AttentionInterface`.
"""

from functools import cache
from typing import Any, NamedTuple

import torch
import transformers as T

SIZES = {
    "vocab_size": 96, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
    "num_attention_heads": 4,
}  # fmt: skip
DECODER = SIZES | {"num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 256, "pad_token_id": 0}
EXPERTS = DECODER | {"num_local_experts": 2, "num_experts_per_tok": 1}
WINDOW = {"sliding_window": 16}

IDS = torch.randint(3, 90, (2, 37), generator=torch.Generator().manual_seed(0))
PRESENT = torch.arange(37) < torch.tensor([[37], [25]])  # the second sequence has 25 tokens, then padding
IMAGE = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
TEXT = {"input_ids": IDS}
PADDED_RIGHT, PADDED_LEFT = (TEXT | {"attention_mask": X.long()} for X in (PRESENT, PRESENT.flip(1)))


class Family(NamedTuple):
    """The class of a model, the class of its configuration with its options, and the arguments of a call."""

    model: Any
    config: Any
    options: dict
    inputs: dict


FAMILIES = {
    "ViT": Family(T.ViTModel, T.ViTConfig, SIZES | {"image_size": 32, "patch_size": 8}, {"pixel_values": IMAGE}),
    "GPT-2": Family(
        T.GPT2LMHeadModel, T.GPT2Config,
        {"vocab_size": 96, "n_embd": 64, "n_layer": 2, "n_head": 4, "bos_token_id": 1, "eos_token_id": 2}, TEXT,
    ),
    "Llama": Family(T.LlamaForCausalLM, T.LlamaConfig, DECODER, PADDED_LEFT),
    "BERT": Family(T.BertModel, T.BertConfig, SIZES, PADDED_RIGHT),
    "Mistral": Family(T.MistralForCausalLM, T.MistralConfig, DECODER | WINDOW, PADDED_LEFT),
    "Gemma 2": Family(
        T.Gemma2ForCausalLM, T.Gemma2Config,
        DECODER | WINDOW | {"attn_logit_softcapping": 5.0, "query_pre_attn_scalar": 16, "initializer_range": 0.5},
        TEXT,
    ),
    "GPT-OSS": Family(
        T.GptOssForCausalLM, T.GptOssConfig,
        EXPERTS | WINDOW | {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}}, TEXT,
    ),
    "Llama 4": Family(
        T.Llama4ForCausalLM, T.Llama4TextConfig,
        EXPERTS | {"attention_chunk_size": 16, "intermediate_size_mlp": 96}, TEXT,
    ),
}  # fmt: skip
# It never asks for masks: its attention_mask is None, even if the name has a function that makes them.
WITHOUT_MASKS = {
    "CLIP": Family(
        T.CLIPVisionModel, T.CLIPVisionConfig, FAMILIES["ViT"].options, FAMILIES["ViT"].inputs
    ),
}  # fmt: skip


@cache
def model(family: str, attention: str, **options: Any) -> Any:
    """Return the model of a family, in eval mode, with an attention of that name.

    The attention is looked up in each call of the model: a name may be registered anew. options: in place of the
    family's.
    """
    kind, config, default, _ = _family(family)
    torch.manual_seed(0)
    made = config(**(default | options))
    made._experts_implementation = "eager"
    return kind._from_config(made, attn_implementation=attention).eval()


def _family(name):
    return (FAMILIES | WITHOUT_MASKS)[name]


def output(family: str, attention: str, inputs: dict | None = None, **options: Any) -> torch.Tensor:
    """Return what the model of a family computes, of its tokens and not of padding.

    inputs: in place of the family's. options: as in `model`.
    """
    inputs = inputs or _family(family).inputs
    with torch.no_grad():
        found = model(family, attention, **options)(**inputs)[0]
    return found[inputs["attention_mask"].bool()] if "attention_mask" in inputs else found


def written(attention: str, cache: str, family: str = "Llama", tokens: int = 10, padding: int = 4) -> torch.Tensor:
    """Return the logits of three tokens that a model writes after two prompts, of which one is padded on the left.

    cache: "dynamic" or "static". tokens: of each prompt, of which `padding` are padding in the second.
    """
    present = torch.arange(tokens) >= torch.tensor([[0], [padding]])
    writer = model(family, attention, eos_token_id=None)
    with torch.no_grad():
        found = writer.generate(
            IDS[:, :tokens], attention_mask=present.long(), max_new_tokens=3, do_sample=False,
            cache_implementation=cache, return_dict_in_generate=True, output_logits=True,
        )  # fmt: skip
    return torch.stack(found.logits)
