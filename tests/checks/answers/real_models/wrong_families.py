"""Wrong answers on the families of models: see `tests.checks.answers`."""

import torch


# model_attention, not_two: the attention alone
def my_model_attention():
    def attention(module, query, key, value, attention_mask, scaling=None, **others):
        return (query @ key.mT * scaling).softmax(-1) @ value, None

    return attention


# model_attention, no_pair: O alone
def my_model_attention():
    def attention(module, query, key, value, attention_mask, scaling=None, **others):
        return ((query @ key.mT * scaling).softmax(-1) @ value).transpose(1, 2)

    return attention, lambda **given: None


# model_attention, raises: no word but those that Llama uses
def my_model_attention():
    def attention(module, query, key, value, attention_mask, scaling):
        return ((query @ key.mT * scaling).softmax(-1) @ value).transpose(1, 2), None

    return attention, lambda **given: None


# model_attention, heads_dealt: tiled as in NumPy
def my_model_attention():
    def attention(module, query, key, value, attention_mask, scaling=None, **others):
        copies = query.shape[1] // key.shape[1]
        S = query @ torch.cat([key] * copies, dim=1).mT * scaling
        if attention_mask is not None:
            S = torch.where(attention_mask, S, -torch.inf)
        P = S.softmax(-1).nan_to_num()
        return (P @ torch.cat([value] * copies, dim=1)).transpose(1, 2), None

    def mask(batch_size, q_length, kv_length, q_offset=0, mask_function=None, attention_mask=None, **others):
        i, j = q_offset + torch.arange(q_length)[:, None], torch.arange(kv_length)
        seen = mask_function(torch.arange(batch_size)[:, None, None, None], torch.tensor(0), i, j)
        seen = seen.expand(batch_size, 1, q_length, kv_length)
        return seen if attention_mask is None else seen & attention_mask[:, None, None].bool()

    return attention, mask


# model_attention, no_guard: all words honoured, and nan for padding on the left
def my_model_attention():
    def attention(module, query, key, value, attention_mask, scaling=None, softcap=None, s_aux=None, **others):
        group = query.shape[1] // key.shape[1]
        S = query @ key.repeat_interleave(group, 1).mT * scaling
        S = S if attention_mask is None else S + torch.where(attention_mask, 0.0, -torch.inf)
        weights = torch.exp(S - S.amax(-1, keepdim=True))
        P = weights / weights.sum(-1, keepdim=True)
        return (P @ value.repeat_interleave(group, 1)).transpose(1, 2), None

    def mask(batch_size, q_length, kv_length, q_offset=0, mask_function=None, attention_mask=None, **others):
        i, j = q_offset + torch.arange(q_length)[:, None], torch.arange(kv_length)
        seen = mask_function(torch.arange(batch_size)[:, None, None, None], torch.tensor(0), i, j)
        seen = seen.expand(batch_size, 1, q_length, kv_length)
        return seen if attention_mask is None else seen & attention_mask[:, None, None].bool()

    return attention, mask


# model_attention, later_keys_seen: the mask function hides padding and nothing else
def my_model_attention():
    def attention(module, query, key, value, attention_mask, scaling=None, **others):
        group = query.shape[1] // key.shape[1]
        S = query @ key.repeat_interleave(group, 1).mT * scaling
        S = S if attention_mask is None else S.masked_fill(~attention_mask, -1e30)
        return (S.softmax(-1) @ value.repeat_interleave(group, 1)).transpose(1, 2), None

    def mask(batch_size, q_length, kv_length, attention_mask=None, **others):
        if attention_mask is None:
            return None
        return attention_mask[:, None, None].bool().expand(batch_size, 1, q_length, kv_length)

    return attention, mask


# model_attention, no_chunks: causal by the module, windows by the word
def my_model_attention():
    def attention(
        module, query, key, value, attention_mask, scaling=None, sliding_window=None, softcap=None, s_aux=None, **_
    ):
        group, past = query.shape[1] // key.shape[1], key.shape[2] - query.shape[2]
        S = query @ key.repeat_interleave(group, 1).mT * scaling
        S = S if softcap is None else softcap * torch.tanh(S / softcap)
        if attention_mask is not None:
            S = S.masked_fill(~attention_mask, -torch.inf)
        if module.is_causal:
            S = S + torch.full(S.shape[2:], -torch.inf).triu(past + 1)
            if sliding_window:
                S = S + torch.full(S.shape[2:], -torch.inf).tril(past - sliding_window)
        rest = -torch.inf if s_aux is None else s_aux[:, None, None]
        P = torch.cat([S, torch.zeros_like(S[..., :1]) + rest], dim=-1).softmax(-1)[..., :-1].nan_to_num()
        return (P @ value.repeat_interleave(group, 1)).transpose(1, 2), None

    def mask(batch_size, q_length, kv_length, attention_mask=None, **others):
        if attention_mask is None:
            return None
        return attention_mask[:, None, None].bool().expand(batch_size, 1, q_length, kv_length)

    return attention, mask


# model_attention, padding_too_short: the last keys of what says where padding is
def my_model_attention():
    def attention(module, query, key, value, attention_mask, scaling=None, softcap=None, s_aux=None, **others):
        group = query.shape[1] // key.shape[1]
        S = query @ key.repeat_interleave(group, 1).mT * scaling
        S = S if softcap is None else softcap * torch.tanh(S / softcap)
        S = S if attention_mask is None else S.masked_fill(~attention_mask, -torch.inf)
        rest = -torch.inf if s_aux is None else s_aux[:, None, None]
        P = torch.cat([S, torch.zeros_like(S[..., :1]) + rest], dim=-1).softmax(-1)[..., :-1].nan_to_num()
        return (P @ value.repeat_interleave(group, 1)).transpose(1, 2), None

    def mask(
        batch_size, q_length, kv_length, q_offset=0, kv_offset=0, mask_function=None, attention_mask=None, **others
    ):
        i, j = q_offset + torch.arange(q_length)[:, None], kv_offset + torch.arange(kv_length)
        seen = mask_function(torch.arange(batch_size)[:, None, None, None], torch.tensor(0), i, j)
        seen = seen.expand(batch_size, 1, q_length, kv_length)
        return seen if attention_mask is None else seen & attention_mask[:, None, None, -kv_length:].bool()

    return attention, mask


# witness, unnamed: a class of transformers
def my_witness(adapter):
    return "LlamaForCausalLM"


# witness, unnamed: several at once
def my_witness(adapter):
    return ["Llama", "Mistral"]


# witness, nothing_returned: printed
def my_witness(adapter):
    print({"A": "Llama"}.get(adapter))


# witness, raises: the last one is left out
def my_witness(adapter):
    return dict(A="Llama", B="BERT", C="Mistral", D="Gemma 2", E="Llama")[adapter]


# witness, F_somebody: Gemma 2 has a scale of its own, but here it is 1 / sqrt(d)
def my_witness(adapter):
    return dict(A="Llama", B="BERT", C="Mistral", D="Gemma 2", E="Llama", F="Gemma 2")[adapter]


# witness, E_keys_seen: any family with padding
def my_witness(adapter):
    return dict(A="Llama", B="BERT", C="Mistral", D="Gemma 2").get(adapter, "BERT")


# witness, A_own_heads: any family
def my_witness(adapter):
    return "BERT"
