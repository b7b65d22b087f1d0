"""A small language model in plain PyTorch: a decoder-only transformer that accepts any attention.

    attention(Q, K, V, causal=True) -> O      Q and O: (B, H_q, N, d); K and V: (B, H_k, N, d)

It processes whole texts at once, as in training, or only new tokens, with a cache of the K and V before them: see
`LM.step` and `cached_attention`. Positions are rotary, norms come first in a layer, and one matrix serves as both
embedding and head.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn.functional import gelu, linear, scaled_dot_product_attention

from flashlib.cache import Cache
from flashlib.inputs import check_counts
from flashlib.lm import rotary
from flashlib.lm.cached_attention import NewTokens, gathered
from flashlib.lm.rotary import rotate
from flashlib.lm.sampling import check_temperature, choose
from flashlib.types import Array


@dataclass(frozen=True)
class Config:
    """The sizes of a model. kv_heads: heads of K and V, a divisor of heads; context: the longest N."""

    vocab: int
    layers: int
    width: int
    heads: int
    kv_heads: int
    context: int

    def __post_init__(self):
        check_counts(at_least=1, **vars(self))
        if self.heads % self.kv_heads:
            raise ValueError(f"heads is {self.heads}; with kv_heads {self.kv_heads} it must be a multiple of that")
        if self.width % (2 * self.heads):  # rotary positions rotate pairs of numbers
            raise ValueError(f"width is {self.width}; it must be a multiple of 2 * heads, {2 * self.heads}")


def sdpa(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool) -> torch.Tensor:
    return scaled_dot_product_attention(Q, K, V, is_causal=causal, enable_gqa=True)


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

    def forward(self, x: torch.Tensor, attend: Callable[..., torch.Tensor]) -> torch.Tensor:  # x: (B, N, width)
        QKV = self.QKV(self.norm_1(x)).unflatten(-1, (-1, self.d)).transpose(1, 2)  # (B, H_q + 2 H_k, N, d)
        O = attend(*QKV.split(self.heads, dim=1))  # (B, H_q, N, d)
        x = x + self.out(O.transpose(1, 2).flatten(2))
        return x + self.narrow(gelu(self.wide(self.norm_2(x))))


class LM(nn.Module):
    """The model: from tokens (B, N), integers below vocab, to the logits (B, N, vocab) of each next token."""

    def __init__(self, config, attention=sdpa, seed=0):
        super().__init__()
        self.config, self.attention = config, attention
        self.embedding = nn.Embedding(config.vocab, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width)
        device = self.embedding.weight.device
        self.angles = rotary.angles(config.context, config.width // config.heads, device=device)
        generator = torch.Generator("cpu").manual_seed(seed)  # the same numbers on every device
        for name, W in self.named_parameters():
            if W.ndim == 2:
                many = 2 * config.layers if name.endswith(("out.weight", "narrow.weight")) else 1  # added to x
                drawn = torch.empty_like(W, device="cpu")
                W.data.copy_(nn.init.normal_(drawn, std=0.02 / many**0.5, generator=generator))

    def _apply(self, fn, recurse=True):
        """Move the angles with the weights, as `to` does, but keep them in fp32; buffers would be rounded too."""
        super()._apply(fn, recurse)
        self.angles = tuple(X.to(self.embedding.weight.device) for X in self.angles)
        return self

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits of whole texts, without a cache."""
        N = tokens.shape[1]
        if N > self.config.context:
            raise ValueError(f"tokens have N = {N}; this model's context is {self.config.context}")
        cos, sin = (X[:N] for X in self.angles)

        def attend(layer, Q, K, V):
            return self.attention(rotate(Q, cos, sin), rotate(K, cos, sin), V, causal=True)

        return self.logits(tokens, attend)

    def logits(self, tokens: torch.Tensor, attend: Callable[..., torch.Tensor]) -> torch.Tensor:
        """Return logits of tokens; attend(layer, Q, K, V) -> O, for Q and K before their rotation."""
        x = self.embedding(tokens)
        for layer, block in enumerate(self.blocks):
            x = block(x, functools.partial(attend, layer))
        return linear(self.norm(x), self.embedding.weight)

    def cache(self, n_pages: int, page: int = 16, dtype: torch.dtype | None = None) -> Cache:
        """Return an empty cache for this model's layers and heads, on the device of its weights.

        dtype: by default that of the weights, or torch.float8_e4m3fn, see `flashlib.cache.Cache`.
        """
        W, sizes = self.embedding.weight, self.config
        d, dtype = sizes.width // sizes.heads, W.dtype if dtype is None else dtype
        return Cache(n_pages, page, sizes.kv_heads, d, layers=sizes.layers, dtype=dtype, device=W.device)

    @torch.no_grad()
    def step(
        self,
        tokens: Sequence[Sequence[int]] | torch.Tensor,
        cache: Cache,
        sequences: Sequence[int],
        over: Callable[..., torch.Tensor] = gathered,
    ) -> torch.Tensor:
        """Return the logits of new tokens, (B, n, vocab), and store their K and V in the cache.

        tokens: (B, n), n new ones for each sequence: lists or a tensor. One token for each sequence is a step of
        decoding; many for one sequence are a chunk of a prompt. sequences: B different numbers from cache.start.
        over: `cached_attention.gathered` or `kernels`, how K and V are written and attended to. Raises TypeError
        or ValueError for anything else, and OutOfPages. After an error the cache contains no new tokens.
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
            tokens = torch.tensor(rows, device=lengths.device)
            return self.logits(tokens, lambda layer, *QKV: over(*QKV, layer, new))
        except BaseException:  # KeyboardInterrupt too: pages without K and V must not be found by their content
            for sequence, slots in given:
                cache.drop(sequence, len(slots))
            raise

    def generate(
        self,
        prompt: Sequence[int] | Array,
        n: int,
        *,
        seed: int = 0,
        temperature: float = 1.0,
        over: Callable | None = gathered,
    ) -> Iterator[int]:
        """Return a generator of n tokens that follow a prompt, one at a time.

        prompt: a list of at least one token; together with n, at most the model's context. temperature, seed: see
        `sampling.choose`. over: as in `step`; None: no cache, so all tokens so far go through the model for each
        new one. Raises TypeError or ValueError for anything else, at once.
        """
        prompt = self.check_prompt(prompt, n)
        check_temperature(temperature)
        check_counts(seed=seed)
        return self._generate(prompt, n, seed, temperature, over)

    def check_prompt(self, prompt: Sequence[int] | Array, n: int) -> list[int]:
        """Return a prompt as a list; raise TypeError or ValueError unless n tokens can follow it."""
        check_counts(at_least=1, n=n)
        if isinstance(prompt, str):
            raise TypeError("the prompt is a str; pass its tokens: tokenizer.encode(prompt)")
        prompt = prompt.tolist() if hasattr(prompt, "tolist") else list(prompt)
        if not prompt:
            raise ValueError("the prompt is empty; pass at least one token, such as tokenizer.encode(' ')")
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

    def _new(self, cache, given, lengths):
        sequences, slots = zip(*given, strict=True)
        n = len(slots[0])
        positions = lengths[:, None] - n + torch.arange(n, device=lengths.device)
        table = cache.table(sequences)
        return NewTokens(cache, sequences, np.concatenate(slots), lengths, positions, table, self.angles)

    def _check(self, tokens, sequences):
        """Return tokens as lists of equal length; raise TypeError or ValueError unless `step` takes them."""
        try:
            tokens = torch.as_tensor(tokens, device="cpu")
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
