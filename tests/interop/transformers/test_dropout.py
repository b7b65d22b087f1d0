"""Dropout in training: torch's seed determines the dropped weights, and the result of the others is right."""

import numpy as np
import pytest

from tests import required

required.package("transformers", "run make models")

import torch  # noqa: E402

from flashlib import kernels, masks  # noqa: E402
from flashlib.interop.transformers import dropping, engines, register  # noqa: E402
from flashlib.interop.transformers.padding import Present  # noqa: E402
from tests.interop.transformers.families import FAMILIES, N  # noqa: E402
from tests.tiers import amounts  # noqa: E402

LLAMA = FAMILIES["llama"]
P = 0.3
B, H, H_K, D = 2, 4, 2, 16
IDS = np.array([[0] * 5 + [1] * 12 + [2] * 2, [0] * 19])
LEFT = Present(np.array([0, 7]), np.array([19, 19]))
RIGHT = Present(np.array([0, 0]), np.array([13, 19]))
CASES = {  # N_q, N_k, causal, mask
    "all": (19, 19, False, None),
    "causal": (19, 19, True, None),
    "window and cap": (19, 19, True, masks.window(4, 0) & masks.softcap(2.0)),
    "documents": (19, 19, False, masks.causal() & masks.documents(IDS)),
    "padding on the left": (19, 19, True, LEFT),
    "padding on the right": (19, 19, False, masks.window(6, 3) & RIGHT),
    "more keys": (7, 19, True, None),
    "keys with padding": (7, 19, False, LEFT),
}


def parts_of(mask):
    return () if mask is None else mask.conjuncts()


def seen(mask, causal, N_q, N_k):
    """Return which scores are seen, (B, N_q, N_k): rows and keys that are padding see and are seen by nothing."""
    r, c = np.arange(N_q)[:, None] + N_k - N_q, np.arange(N_k)
    found = np.ones((B, N_q, N_k), bool)
    if causal:
        found &= c <= r
    for part in parts_of(mask):
        for b in range(B):
            if not isinstance(part, masks.Softcap):
                found[b] &= np.broadcast_to(part.sees(masks.Place(N_q, N_k, b, 0), r, c), (N_q, N_k))
    there = kept(mask, N_k)
    if N_q == N_k:
        found &= there[:, :, None]
    return torch.from_numpy(found & there[:, None])


def kept(mask, N_k):
    """Return which keys are no padding, (B, N_k)."""
    parts = [part for part in parts_of(mask) if isinstance(part, Present)]
    at = np.arange(N_k)
    return np.stack([[all(p.first[b] <= c < p.end[b] for p in parts) for c in at] for b in range(B)])


def dropped(mask, N_q, N_k, seed):
    """Return which weights are dropped, (B, H, N_q, N_k): packs number the tokens that are in them."""
    keys = kept(mask, N_k)
    rows = keys if N_q == N_k else np.ones((B, N_q), bool)
    numbers = [torch.from_numpy(X.cumsum() - 1).int().to(kernels.DEVICE) for X in (rows, keys)]
    found = kernels.varlen.dropped(P, seed, H, int(rows.sum()), int(keys.sum()), *numbers).cpu()
    found = found.view(H, B, N_q, B, N_k)
    return torch.stack([found[:, b, :, b] for b in range(B)])


def expected(Q, K, V, mask, causal, scale, drop):
    """Return O in fp64 from which weights are dropped."""
    K, V = (X.repeat_interleave(H // H_K, dim=1) for X in (K, V))
    S = Q @ K.mT * scale
    for part in parts_of(mask):
        if isinstance(part, masks.Softcap):
            S = part.cap * (S / part.cap).tanh()
    there = seen(mask, causal, Q.shape[2], K.shape[2])[:, None]
    P_ij = S.masked_fill(~there, -torch.inf).softmax(-1).nan_to_num()
    return P_ij.masked_fill(drop, 0) / (1 - P) @ V


@pytest.mark.parametrize("amount, case", amounts(CASES, few=["window and cap", "documents", "keys with padding"]))
def test_outputs_and_gradients_are_those_of_the_kept_weights(case, amount):
    N_q, N_k, causal, mask = CASES[case]
    g = torch.Generator().manual_seed(1)
    shapes = ((B, n, h, D) for n, h in ((N_q, H), (N_k, H_K), (N_k, H_K), (N_q, H)))
    *given, dO = (torch.randn(shape, generator=g).transpose(1, 2).to(kernels.DEVICE) for shape in shapes)
    leaves = [X.requires_grad_() for X in given]
    torch.manual_seed(7)
    O = dropping.attention(*leaves, P, causal=causal, mask=mask, scale=0.3).O
    grads = torch.autograd.grad(O, leaves, dO)
    torch.manual_seed(7)
    drop = dropped(mask, N_q, N_k, torch.randint(2**62, (), device=kernels.DEVICE))
    exact = [X.detach().double().cpu().requires_grad_() for X in leaves]
    right = expected(*exact, mask, causal, 0.3, drop)
    for X, Y in zip((O, *grads), (right, *torch.autograd.grad(right, exact, dO.double().cpu())), strict=True):
        torch.testing.assert_close(X.double().cpu(), Y, atol=5e-6 if kernels.INTERPRETED else 5e-3, rtol=0)


def test_few_rows_without_gradients_are_dropped_too():
    """As when a model stays in training while it writes: without dropout so few rows would be decoded."""
    g = torch.Generator().manual_seed(1)
    Q, K = (torch.randn(B, H, n, D, generator=g).to(kernels.DEVICE) for n in (3, 19))
    found = []
    for attend in (engines.by_kernels, dropping.attention):
        torch.manual_seed(7)
        found.append(attend(Q, K, K, dropout=P, causal=True, mask=None, scale=0.3).O)
    assert torch.equal(*found)


REFUSED = {  # N_q, causal, mask
    "a prefix": (19, False, masks.prefix(3), "has prefix"),
    "a bias": (19, False, masks.bias(torch.zeros(19, 19)), "has bias"),
    "documents twice": (19, False, masks.documents(IDS) & masks.documents(IDS[::-1]), "has documents"),
    "padding twice": (19, False, LEFT & RIGHT, "has <keys that are no padding"),
    "documents of more keys": (7, False, masks.documents(IDS), "7 queries and 19 keys"),
    "padding of more keys, causal": (7, True, LEFT, "7 queries and 19 keys"),
    "padding of more keys in a window": (7, False, masks.window(4, 3) & LEFT, "7 queries and 19 keys"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_masks_that_packs_cannot_express_are_refused(case):
    N_q, causal, mask, said = REFUSED[case]
    Q, K = torch.zeros(B, H, N_q, D), torch.zeros(B, H, 19, D)
    with pytest.raises(ValueError, match=f"dropout is given, .*{said}.* Set the attention dropout"):
        dropping.attention(Q, K, K, P, causal=causal, mask=mask, scale=1.0)


NAMES = {  # what the config calls it
    "llama": "attention_dropout", "mistral": "attention_dropout", "gemma2": "attention_dropout",
    "gpt_oss": "attention_dropout", "bert": "attention_probs_dropout_prob",
}  # fmt: skip


def one_text(family):
    """Return a family that is given the first of its two texts alone."""
    return family._replace(inputs={"input_ids": family.inputs["input_ids"][:1]})


@pytest.mark.parametrize("amount, name", amounts(NAMES, few=["llama", "gpt_oss"]))
def test_dropout_in_training_follows_torchs_seed(name, amount):
    family = FAMILIES[name] if name in ("llama", "bert") else one_text(FAMILIES[name])
    register("tested_dropout", "kernels")
    model = family.build("tested_dropout", **{NAMES[name]: 0.2}).to(kernels.DEVICE)
    there = torch.ones(2, N, dtype=torch.long)
    there[1, :9] = 0
    given = {"attention_mask": there} if name == "llama" else {}  # BERT's text has padding, too

    def logits(seed):
        torch.manual_seed(seed)
        return family.output(model, **given)

    with torch.no_grad():
        plain = logits(1)
        if name == "llama":
            torch.testing.assert_close(plain, logits(2), rtol=0, atol=0)
        model.train()
        one, other = logits(3), logits(4)
        if name == "llama":
            assert torch.equal(one, logits(3))
    assert one.isfinite().all()
    assert (one - other).abs().max() > 1e-3 and (one - plain).abs().max() > 1e-3


def test_recomputed_layers_drop_the_same_weights():
    register("tested_dropout", "kernels")
    family, grads = one_text(LLAMA), []
    for again in (False, True):
        model = family.build("tested_dropout", attention_dropout=0.2, num_hidden_layers=1)
        model.to(kernels.DEVICE).train()
        if again:
            model.activation_checkpointing_enable()
        torch.manual_seed(3)
        family.output(model, use_cache=False).square().sum().backward()
        grads.append([W.grad for W in model.parameters()])
    for one, other in zip(*grads, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("engine", ["tiles", "torch_ref"])
def test_other_engines_refuse_it(engine):
    register("tested_dropout", engine)
    model = LLAMA.build("tested_dropout", attention_dropout=0.1)
    with torch.no_grad():
        LLAMA.output(model)
        with pytest.raises(ValueError, match="dropout is 0.1, and this engine has none: register"):
            LLAMA.output(model.train())


def test_a_custom_engine_gets_dropout():
    given = []

    def mine(Q, K, V, *, causal=False, mask=None, scale=None, dropout=0.0):
        given.append(dropout)
        return dropping.attention(Q, K, V, P, causal=causal, mask=mask, scale=scale)

    register("tested_dropout", mine)
    one_text(LLAMA).output(LLAMA.build("tested_dropout", attention_dropout=0.1).train())
    assert set(given) == {0.1}
