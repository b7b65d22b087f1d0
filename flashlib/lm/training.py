"""Train a language model: random pieces of a text, AdamW, and the loss of each step."""

import itertools
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from flashlib.inputs import check_counts
from flashlib.lm.model import LM


def batches(
    tokens: torch.Tensor, context: int, batch: int, seed: int = 0
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield X and Y, (batch, context), endlessly: random pieces of tokens, and the token after each in X."""
    check_counts(at_least=1, context=context, batch=batch)
    if tokens.ndim != 1 or len(tokens) <= context:
        raise ValueError(f"tokens has shape {tuple(tokens.shape)}; expected one axis, longer than {context}")
    generator = torch.Generator("cpu").manual_seed(seed)
    while True:
        starts = torch.randint(len(tokens) - context, (batch, 1), generator=generator, device="cpu")
        pieces = tokens[starts.to(tokens.device) + torch.arange(context + 1, device=tokens.device)]
        yield pieces[:, :-1], pieces[:, 1:]


def train(
    model: LM, tokens: torch.Tensor, steps: int, *, batch: int, lr: float = 1e-3, seed: int = 0
) -> Iterator[torch.Tensor]:
    """Train with AdamW and yield each step's loss, a tensor, in nats per token; on CUDA with bf16 autocast."""
    check_counts(at_least=1, steps=steps)
    if tokens.max() >= model.config.vocab:
        raise ValueError(f"tokens go up to {tokens.max()}; this model's vocab is {model.config.vocab}")
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1)
    for step, (X, Y) in enumerate(itertools.islice(batches(tokens, model.config.context, batch, seed), steps)):
        warmup, left = min(1, 10 * (step + 1) / steps), 1 - step / steps
        optimizer.param_groups[0]["lr"] = lr * warmup * left
        with torch.autocast(X.device.type, torch.bfloat16, enabled=X.is_cuda):
            loss = cross_entropy(model(X).flatten(0, 1), Y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield loss.detach()
