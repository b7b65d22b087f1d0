"""Right answers on the families of models, in other styles: see `tests.checks.answers`."""

import torch


# model_attention: a finite number for hidden scores, as in transformers
def my_model_attention():
    def engine(module, query, key, value, attention_mask, scaling=None, softcap=None, s_aux=None, **_):
        heads = torch.arange(query.shape[1]) // (query.shape[1] // key.shape[1])
        S = torch.einsum("bhnd,bhmd->bhnm", query, key[:, heads]) * scaling
        S = S if softcap is None else torch.tanh(S / softcap) * softcap
        if attention_mask is not None:
            S = torch.where(attention_mask, S, torch.finfo(S.dtype).min)
        lse = S.logsumexp(-1)
        if s_aux is not None:
            lse = torch.logaddexp(lse, s_aux[:, None])
        return torch.einsum("bhnm,bhmd->bnhd", (S - lse[..., None]).exp(), value[:, heads]), None

    def masks(*, batch_size, q_length, kv_length, q_offset, kv_offset, mask_function, attention_mask, **_):
        j = kv_offset + torch.arange(kv_length)
        i = q_offset + torch.arange(q_length)
        seen = mask_function(torch.arange(batch_size).view(-1, 1, 1, 1), torch.tensor(0), i.view(-1, 1), j)
        seen = seen.expand(batch_size, 1, q_length, kv_length).clone()
        if attention_mask is not None:
            present = attention_mask[:, None, None, kv_offset:].bool()
            n = min(kv_length, present.shape[3])
            seen[..., :n] &= present[..., :n]
            seen[..., n:] = False
        return seen

    return [engine, masks]


# model_attention: PyTorch's attention where it can
def my_model_attention():
    def engine(module, query, key, value, attention_mask, **words):
        if words.get("softcap") is None and words.get("s_aux") is None:
            O = torch.nn.functional.scaled_dot_product_attention(
                query, key, value, attn_mask=attention_mask, scale=words.get("scaling"), enable_gqa=True
            )
            return O.nan_to_num().transpose(1, 2), None
        group = query.shape[1] // key.shape[1]
        key, value = (X.repeat_interleave(group, dim=1) for X in (key, value))
        S = (query * words["scaling"]) @ key.transpose(2, 3)
        if words.get("softcap") is not None:
            S = words["softcap"] * (S / words["softcap"]).tanh()
        if attention_mask is not None:
            S = S.masked_fill(attention_mask.logical_not(), float("-inf"))
        if words.get("s_aux") is not None:
            S = torch.cat([S, words["s_aux"].view(1, -1, 1, 1).expand(*S.shape[:3], 1)], dim=3)
            value = torch.cat([value, torch.zeros_like(value[:, :, :1])], dim=2)
        return (S.softmax(3).nan_to_num() @ value).transpose(1, 2).contiguous(), None

    def masks(batch_size, q_length, kv_length, q_offset, kv_offset, mask_function, attention_mask=None, **_):
        table = torch.zeros(batch_size, 1, q_length, kv_length, dtype=torch.bool)
        for b in range(batch_size):
            rows = torch.arange(q_length)[:, None] + q_offset
            columns = torch.arange(kv_length) + kv_offset
            table[b, 0] = mask_function(torch.tensor(b), torch.tensor(0), rows, columns)
            if attention_mask is not None:
                present = attention_mask[b, kv_offset : kv_offset + kv_length] == 1
                table[b, 0, :, : len(present)] &= present
                table[b, 0, :, len(present) :] = False
        return table

    return engine, masks


# witness: other families that notice
def my_witness(adapter):
    named = dict(A="Gemma 2", B="Mistral", C="Llama 4", D="Gemma 2", E="Mistral")
    return named.get(adapter, "nobody")


# witness: by the letter's place
def my_witness(adapter):
    return ("GPT-OSS", "BERT", "GPT-OSS", "Gemma 2", "Llama", "nobody")["ABCDEF".index(adapter)]
