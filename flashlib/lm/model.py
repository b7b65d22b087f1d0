"""A small language model that writes with a cache: the model of `gpt`, which can also go on where it stopped.

Without a cache all tokens of a text go through it at once, with any attention, as in training:

    attention(Q, K, V, causal=True) -> O      Q and O: (B, H_q, N, d); K and V: (B, H_k, N, d)

With one, `step` takes only new tokens. Their K and V are written into pages, and their Q attends to what is there:
by `gathered`, in plain PyTorch, quick on a laptop, or by `kernels`, ours.
Tokens are bytes of UTF-8, so that any text can be a prompt.
"""

import functools
import json
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import safetensors
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn.functional import gelu, linear, scaled_dot_product_attention

from flashlib.cache import Cache
from flashlib.inputs import check_counts
from flashlib.lm import gpt, rotary

CONFIG = gpt.Config(vocab=256, layers=4, width=128, heads=4, kv_heads=2, context=512)  # 754 816 weights
STORED = torch.float16  # 1.5 MB of them; a GPU that computes in it has the same weights as a CPU in float32
FORMAT = "flashlib.lm 1"


def sdpa(Q, K, V, causal):
    return scaled_dot_product_attention(Q, K, V, is_causal=causal, enable_gqa=True)


class New(NamedTuple):
    """New tokens of B sequences, n of each, that have their slots in a cache, and no K and V there yet.

    lengths: (B,), with the new ones; positions: (B, n); rotary: cos and sin, (context, d / 2), fp32.
    """

    cache: Cache
    sequences: list
    slots: np.ndarray  # (B n, 2)
    lengths: torch.Tensor
    positions: torch.Tensor
    table: torch.Tensor
    rotary: tuple

    def stored(self, layer):
        """Return what a kernel takes of a layer: K, V, lengths and table, and by name the scales of fp8."""
        scales = {"k_scale": self.cache.k_scale, "v_scale": self.cache.v_scale}
        of_layer = {name: X[layer] for name, X in scales.items() if X is not None}
        return (self.cache.K[layer], self.cache.V[layer], self.lengths, self.table), of_layer


def gathered(Q, K, V, layer, new):
    """Write K and V (B, H_k, n, d) of new tokens; return O of Q (B, H_q, n, d) over each sequence, gathered."""
    cos, sin = (X[new.positions][:, None] for X in new.rotary)  # (B, 1, n, d / 2)
    Q, K = (rotary.rotate(X, cos, sin) for X in (Q, K))
    new.cache.write(new.slots, *(X.transpose(0, 1).flatten(1, 2) for X in (K, V)), layer=layer)
    O = []
    for q, sequence in zip(Q, new.sequences, strict=True):
        k, v = (X.to(q.dtype) for X in new.cache.gather(sequence, layer))  # (H_k, N, d)
        n, N = q.shape[1], k.shape[1]
        seen = torch.ones(n, N, dtype=torch.bool, device=q.device).tril(N - n)
        O.append(scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=seen, enable_gqa=True))
    return torch.cat(O)


def kernels(Q, K, V, layer, new):
    """Do what `gathered` does by our kernels, interpreted on a CPU: they find K and V where the pages are."""
    from flashlib.kernels import append, decode  # only when called: Triton may not be installed

    stored, scales = new.stored(layer)
    append.append(K, V, *stored, rotary=new.rotary, **scales)
    return decode.attention(append.rotate(Q, new.lengths, new.rotary), *stored, causal=True, **scales).O


class Block(nn.Module):
    """Attention, then a network that sees each token by itself; what they return is added to x."""

    def __init__(self, config):
        super().__init__()
        width, self.d = config.width, config.width // config.heads
        self.heads = config.heads, config.kv_heads, config.kv_heads
        self.norm_1, self.norm_2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.QKV = nn.Linear(width, sum(self.heads) * self.d, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.wide, self.narrow = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x, attend):  # x: (B, N, width)
        QKV = self.QKV(self.norm_1(x)).unflatten(-1, (-1, self.d)).transpose(1, 2)  # (B, H_q + 2 H_k, N, d)
        O = attend(*QKV.split(self.heads, dim=1))  # (B, H_q, N, d)
        x = x + self.out(O.transpose(1, 2).flatten(2))
        return x + self.narrow(gelu(self.wide(self.norm_2(x))))


class LM(nn.Module):
    """The model: from tokens (B, N), whole numbers below vocab, to logits (B, N, vocab) of each next token."""

    def __init__(self, config=CONFIG, attention=sdpa, seed=0):
        super().__init__()
        self.config, self.attention = config, attention
        self.embedding = nn.Embedding(config.vocab, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width)
        generator = torch.Generator().manual_seed(seed)
        for name, W in self.named_parameters():
            if W.ndim == 2:
                many = 2 * config.layers if name.endswith(("out.weight", "narrow.weight")) else 1  # are added to x
                nn.init.normal_(W, std=0.02 / many**0.5, generator=generator)

    def forward(self, tokens):
        """Return the logits of whole texts, without a cache."""
        N = tokens.shape[1]
        if N > self.config.context:
            raise ValueError(f"tokens have N = {N}; this model's context is {self.config.context}")
        cos, sin = (X[:N] for X in self._rotary())

        def attend(layer, Q, K, V):
            return self.attention(rotary.rotate(Q, cos, sin), rotary.rotate(K, cos, sin), V, causal=True)

        return self.logits(tokens, attend)

    def cache(self, n_pages, page=16, dtype=None):
        """Return an empty cache for this model: its layers and heads, where its weights are.

        dtype: that of its weights, which is the default, or torch.float8_e4m3fn, see `cache.Cache`.
        """
        W, sizes = self.embedding.weight, self.config
        d, dtype = sizes.width // sizes.heads, W.dtype if dtype is None else dtype
        return Cache(n_pages, page, sizes.kv_heads, d, layers=sizes.layers, dtype=dtype, device=W.device)

    @torch.no_grad()
    def step(self, tokens, cache, sequences, over=gathered):
        """Return the logits of new tokens, (B, n, vocab), and leave their K and V in the cache.

        tokens: (B, n), n new ones of each sequence: lists or a tensor. One for each is a step of decoding, and a
        chunk of a prompt is many for one. sequences: B numbers that cache.start gave, no two the same.
        over: `gathered` or `kernels`, how K and V are written and attended to.
        Raises TypeError or ValueError for anything else, and OutOfPages. After an error the cache has no new
        token.
        """
        rows, sequences = self._check(tokens, sequences), list(sequences)
        lengths = cache.lengths(sequences) + len(rows[0])
        if (longest := int(lengths.max())) > self.config.context:
            raise ValueError(
                f"a sequence would have {longest} tokens; this model's context is {self.config.context}"
            )
        given = []
        try:
            for sequence, row in zip(sequences, rows, strict=True):
                given.append((sequence, cache.append(sequence, row)))
            new = self._new(cache, given, lengths)
            return self.logits(
                torch.tensor(rows, device=lengths.device), lambda layer, *QKV: over(*QKV, layer, new)
            )
        except BaseException:  # KeyboardInterrupt too: what has no K and V must not be found by its content
            for sequence, slots in given:
                cache.drop(sequence, len(slots))
            raise

    def generate(self, prompt, n, *, seed=0, temperature=1.0, over=gathered):
        """Return a generator of n tokens that follow a prompt, one at a time.

        prompt: a list of at least one token; with n they are at most as many as the model's context.
        temperature, seed: see `choose`. over: `gathered` or `kernels`; None: without a cache, all tokens so far go
        through the model for each new one.
        Raises TypeError or ValueError for anything else, at once.
        """
        prompt = self.check_prompt(prompt, n)
        check_temperature(temperature)
        check_counts(seed=seed)
        return self._generate(prompt, n, seed, temperature, over)

    def check_prompt(self, prompt, n):
        """Return a prompt as a list; raise TypeError or ValueError unless n tokens can follow it."""
        check_counts(at_least=1, n=n)
        if isinstance(prompt, str):
            raise TypeError("the prompt is a str; pass its tokens: lm.encode(prompt)")
        prompt = prompt.tolist() if hasattr(prompt, "tolist") else list(prompt)
        if not prompt:
            raise ValueError("the prompt is empty; pass at least one token, such as lm.encode(' ')")
        (prompt,) = self._check([prompt], [0])
        if len(prompt) + n > self.config.context:
            raise ValueError(
                f"the prompt has {len(prompt)} tokens and {n} are to follow; together they are at most "
                f"{self.config.context}, this model's context"
            )
        return prompt

    def _generate(self, tokens, n, seed, temperature, over):
        W, page = self.embedding.weight, 16
        pages = None if over is None else self.cache(-(-(len(tokens) + n) // page), page)
        sequence = None if over is None else pages.start()[0]
        new = tokens
        for _ in range(n):
            if over is None:
                with torch.no_grad():
                    logits = self(torch.tensor([tokens], device=W.device))
            else:
                logits = self.step([new], pages, [sequence], over)
            new = [choose(logits[0, -1], temperature, seed, len(tokens))]
            tokens = tokens + new
            yield new[0]

    def logits(self, tokens, attend):
        """Return logits of tokens; attend(layer, Q, K, V) -> O, for Q and K before their rotation."""
        x = self.embedding(tokens)
        for layer, block in enumerate(self.blocks):
            x = block(x, functools.partial(attend, layer))
        return linear(self.norm(x), self.embedding.weight)

    def _new(self, cache, given, lengths):
        sequences, slots = zip(*given, strict=True)
        n = len(slots[0])
        positions = lengths[:, None] - n + torch.arange(n, device=lengths.device)
        table = cache.table(sequences)
        return New(cache, sequences, np.concatenate(slots), lengths, positions, table, self._rotary())

    def _rotary(self):
        return _angles(self.config.context, self.config.width // self.config.heads, self.embedding.weight.device)

    def _check(self, tokens, sequences):
        """Return tokens as lists of equal length; raise TypeError or ValueError unless `step` takes them."""
        try:
            tokens = torch.as_tensor(tokens).cpu()
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"tokens are not (B, n) whole numbers: {error}") from error
        if tokens.ndim != 2 or not tokens.numel() or len(tokens) != len(sequences):
            raise ValueError(
                f"tokens have shape {tuple(tokens.shape)} and there are {len(sequences)} sequences; pass (B, n), "
                "at least one token for each"
            )
        if tokens.dtype.is_floating_point or tokens.dtype.is_complex or tokens.dtype == torch.bool:
            raise TypeError(f"tokens have dtype {tokens.dtype}; pass whole numbers")
        if tokens.min() < 0 or tokens.max() >= self.config.vocab:
            raise ValueError(
                f"tokens go from {tokens.min()} to {tokens.max()}; accepted are 0 to {self.config.vocab - 1}"
            )
        if len(set(sequences)) < len(sequences):
            raise ValueError(f"sequences are {list(sequences)}; pass each once, its tokens in one row")
        return tokens.tolist()


@functools.lru_cache(maxsize=16)
def _angles(context, d, device):
    return rotary.angles(context, d, device=device)


def encode(text) -> list:
    """Return the tokens of a text, its bytes in UTF-8."""
    return list(text.encode())


def decode(tokens) -> str:
    """Return the text of tokens below 256; bytes that are no UTF-8 become the replacement character."""
    return bytes(tokens).decode(errors="replace")


def choose(logits, temperature, seed, place) -> int:
    """Return the next token: the likeliest at temperature 0, else one drawn from softmax(logits / temperature).

    logits: (vocab,). place: how many tokens are before it. The number drawn depends on seed and place alone, so a
    text that is cut anywhere and taken up again goes on as it would have. Logits that differ by rounding give
    another token only where that number lies between two tokens to that rounding.
    """
    s = logits.double().cpu().numpy()
    if not np.isfinite(s).all():
        raise ValueError("logits hold NaN or infinity, so no token can be chosen; look at the weights")
    if temperature == 0:
        return int(s.argmax())
    with np.errstate(over="ignore"):  # at a temperature near 0, to -inf
        sums = np.exp((s - s.max()) / temperature).cumsum()
    drawn = np.random.default_rng((seed, place)).random()
    return int(np.searchsorted(sums, drawn * sums[-1], side="right"))


def check_temperature(temperature):
    """Raise TypeError or ValueError unless it is a finite number of at least 0."""
    if isinstance(temperature, bool) or not isinstance(temperature, int | float):
        raise TypeError(f"temperature is {temperature!r}; pass a number, 0 for the likeliest token")
    if not 0 <= temperature < float("inf"):
        raise ValueError(f"temperature is {temperature}; pass at least 0, 0 for the likeliest token")


def save(model, path, **about):
    """Write a model's weights as safetensors, rounded to float16, with its sizes and what is said about it.

    about: strings or numbers, such as the loss, kept as text.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    weights = {name: W.detach().to(STORED).cpu().contiguous() for name, W in model.state_dict().items()}
    said = {"format": FORMAT, "config": json.dumps(asdict(model.config))}
    save_file(weights, path, metadata=said | {name: str(value) for name, value in about.items()})


def load(path, attention=sdpa, device=None):
    """Return a model of the weights in a file, in float32, and what is said about it there: strings by name.

    Raises FileNotFoundError, or ValueError for a file that `save` did not write.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} is not there; python -m flashlib.bench.lm --out {path} trains a model")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            about = dict(file.metadata() or {})
            weights = {name: file.get_tensor(name) for name in file.keys()}
        if about.get("format") != FORMAT:
            raise ValueError(f"its format is {about.get('format')!r}, and {FORMAT!r} is known")
        model = LM(gpt.Config(**json.loads(about["config"])), attention)
        model.load_state_dict(weights)
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise ValueError(f"{path} has no model that flashlib.lm.save wrote: {error}") from error
    del about["format"], about["config"]
    return model.to(device).eval(), about
