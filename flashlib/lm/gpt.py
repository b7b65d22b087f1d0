"""A small language model in plain PyTorch, a decoder-only transformer, which takes any attention.

    attention(Q, K, V, causal=True) -> O      Q and O: (B, H_q, N, d); K and V: (B, H_k, N, d)

Tokens are characters. Positions are rotary, norms come first in a layer, and one matrix is both embedding and
head.
"""

import itertools
import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from flashlib.inputs import check_counts


@dataclass(frozen=True)
class Config:
    """The sizes of a model. kv_heads: how many heads K and V have, a divisor of heads; context: the longest N."""

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
        if self.width % (2 * self.heads):  # rotary positions turn pairs of numbers
            raise ValueError(f"width is {self.width}; it must be a multiple of 2 * heads, {2 * self.heads}")


class Block(nn.Module):
    """Attention, then a network that sees each token by itself; what they return is added to x."""

    def __init__(self, config, attention):
        super().__init__()
        width, self.d = config.width, config.width // config.heads
        self.attention, self.heads = attention, (config.heads, config.kv_heads, config.kv_heads)
        self.norm_1, self.norm_2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.QKV = nn.Linear(width, sum(self.heads) * self.d, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.wide, self.narrow = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x, cos, sin):  # x: (B, N, width)
        QKV = self.QKV(self.norm_1(x)).unflatten(-1, (-1, self.d)).transpose(1, 2)  # (B, H_q + 2 H_k, N, d)
        Q, K, V = QKV.split(self.heads, dim=1)
        O = self.attention(rotate(Q, cos, sin), rotate(K, cos, sin), V, causal=True)  # (B, H_q, N, d)
        x = x + self.out(O.transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.wide(self.norm_2(x))))


def rotate(X, cos, sin):
    """Turn pairs of numbers by angles that grow with the position, so that Q_r K_c depends on r - c (RoFormer)."""
    a, b = X.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).type_as(X)


class GPT(nn.Module):
    """The model: from tokens (B, N), whole numbers below vocab, to logits (B, N, vocab) of each next token."""

    def __init__(self, config, attention, seed=0):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab, config.width)
        self.blocks = nn.ModuleList(Block(config, attention) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width)
        speeds = 1e4 ** -torch.linspace(0, 1, config.width // config.heads // 2)
        angles = torch.arange(config.context)[:, None] * speeds  # (context, d / 2)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        generator = torch.Generator().manual_seed(seed)
        for name, W in self.named_parameters():
            if W.ndim == 2:
                many = 2 * config.layers if name.endswith(("out.weight", "narrow.weight")) else 1  # are added to x
                nn.init.normal_(W, std=0.02 / math.sqrt(many), generator=generator)

    def forward(self, tokens):
        N = tokens.shape[1]
        if N > self.config.context:
            raise ValueError(f"tokens have N = {N}; this model's context is {self.config.context}")
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, self.cos[:N], self.sin[:N])
        return F.linear(self.norm(x), self.embedding.weight)


def encode(text):
    """Return a text as numbers, a tensor of one axis, and its alphabet: alphabet[number] is the letter."""
    alphabet = sorted(set(text))
    numbers = {letter: number for number, letter in enumerate(alphabet)}
    return torch.tensor([numbers[letter] for letter in text], dtype=torch.int64), alphabet


def batches(tokens, context, batch, seed=0):
    """Yield X and Y, (batch, context), without end: random pieces of tokens, and the token after each in X."""
    check_counts(at_least=1, context=context, batch=batch)
    if tokens.ndim != 1 or len(tokens) <= context:
        raise ValueError(f"tokens has shape {tuple(tokens.shape)}; expected one axis, longer than {context}")
    generator = torch.Generator().manual_seed(seed)
    while True:
        starts = torch.randint(len(tokens) - context, (batch, 1), generator=generator).to(tokens.device)
        pieces = tokens[starts + torch.arange(context + 1, device=tokens.device)]
        yield pieces[:, :-1], pieces[:, 1:]


def train(model, tokens, steps, *, batch, lr=1e-3, seed=0):
    """Train with AdamW and yield the loss of each step, a tensor, in nats a token; on CUDA with bf16 autocast."""
    check_counts(at_least=1, steps=steps)
    if tokens.max() >= model.config.vocab:
        raise ValueError(f"tokens go up to {tokens.max()}; this model's vocab is {model.config.vocab}")
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1)
    for step, (X, Y) in enumerate(itertools.islice(batches(tokens, model.config.context, batch, seed), steps)):
        warm, left = min(1, 10 * (step + 1) / steps), 1 - step / steps
        optimizer.param_groups[0]["lr"] = lr * warm * left
        with torch.autocast(X.device.type, torch.bfloat16, enabled=X.is_cuda):
            loss = F.cross_entropy(model(X).flatten(0, 1), Y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield loss.detach()
