"""Train the language model of `flashlib.lm` and save its weights: with our attention, in bf16 on a CUDA device.

    python -m flashlib.bench.lm --out notebooks/data/lm.safetensors

Without a CUDA device, where our kernels are interpreted, it is trained in fp32 with SDPA, in about an hour. The
last tenth of the text is held out, and the weights with the lowest loss there are saved, because the text is
short, and a model that is trained longer learns it by heart. Before training, the logits of the first batch are
verified against those in fp64. Afterwards, the file is loaded on the CPU and must write the same text with a cache
as without one. The file also says how the model was trained. Losses are in nats a byte.
"""

import argparse
import math
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from flashlib.bench.common import harness
from flashlib.bench.gpt import TEXT, ours
from flashlib.lm import checkpoint, tokenizer, training
from flashlib.lm.cached_attention import gathered
from flashlib.lm.model import LM, Config, sdpa

CONFIG = Config(vocab=256, layers=4, width=128, heads=4, kv_heads=2, context=512)  # 754 816 weights
BATCH, STEPS, EVERY, LR, SEED = 16, 1500, 50, 2e-3, 0
HELD_OUT = 1 / 10
PROMPT = "ROMEO:\n"


def split(text: str, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the tokens to train on, and those that are held out."""
    tokens = torch.tensor(tokenizer.encode(text), device=device)
    n = int(len(tokens) * (1 - HELD_OUT))
    return tokens[:n], tokens[n:]


def autocast(tokens: torch.Tensor) -> torch.autocast:
    return torch.autocast(tokens.device.type, torch.bfloat16, enabled=tokens.is_cuda)


@torch.no_grad()
def held_out_loss(model: LM, tokens: torch.Tensor) -> float:
    """Return the mean loss over all full contexts of the text, computed as in training: in bf16 on a GPU."""
    context = model.config.context
    n = (len(tokens) - 1) // context
    X, Y = (tokens[start : start + n * context].view(n, context) for start in (0, 1))
    with autocast(tokens):
        return cross_entropy(model(X).flatten(0, 1).float(), Y.flatten()).item()


@torch.no_grad()
def verify(model: LM, X: torch.Tensor) -> None:
    """Raise AssertionError unless the model's logits are about as close to those in fp64 as with SDPA."""
    other = LM(model.config, sdpa).to(X.device)
    other.load_state_dict(model.state_dict())
    with autocast(X):
        given, plain = model(X), other(X)
    harness.verify("the model", given, other.double()(X), plain)


def train(
    model: LM, tokens: torch.Tensor, held_out: torch.Tensor, steps: int, *, batch: int = BATCH, every: int = EVERY
) -> dict:
    """Train a model, load the weights with the lowest held-out loss into it, and return that loss and its step."""
    best, weights = {"loss": math.inf}, None
    for step, loss in enumerate(training.train(model, tokens, steps, batch=batch, lr=LR, seed=SEED), 1):
        if step % every and step < steps:
            continue
        found = held_out_loss(model, held_out)
        harness.say(f"step {step:5}: loss {loss.item():.4f}, held out {found:.4f}")
        if found < best["loss"]:
            best = {"loss": round(found, 4), "step": step}
            weights = {name: W.clone() for name, W in model.state_dict().items()}
    if weights is None:
        raise AssertionError("the held-out loss was never a number; nothing is kept")
    model.load_state_dict(weights)
    return best


def check(path: str | Path, n: int = 200) -> None:
    """Raise AssertionError unless the model in a file writes the same text with a cache as without; show it."""
    model, about = checkpoint.load(path)
    prompt = tokenizer.encode(PROMPT)
    for temperature in (0, 0.8):
        with_cache, without = (
            list(model.generate(prompt, n, temperature=temperature, over=over)) for over in (gathered, None)
        )
        if with_cache != without:
            raise AssertionError(f"at temperature {temperature} the text differs with a cache")
        harness.say(f"\ntemperature {temperature}:\n{PROMPT}{tokenizer.decode(with_cache)}")
    harness.say("\n" + ", ".join(f"{key} {value}" for key, value in about.items()))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench.lm", description=__doc__)
    parser.add_argument("--out", required=True, help="the file for the weights, .safetensors")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"at most; default {STEPS}")
    args = parser.parse_args()
    on_gpu = torch.cuda.is_available()
    attention, device, where = (
        (ours, "cuda", harness.environment) if on_gpu else (sdpa, "cpu", harness.cpu_environment)
    )
    tokens, held_out = split(TEXT.read_text(encoding="utf-8"), device)
    model = LM(CONFIG, attention, SEED).to(device)
    verify(model, next(training.batches(tokens, model.config.context, BATCH, SEED))[0])
    with harness.stopwatch("training"):
        best = train(model, tokens, held_out, args.steps)
    how = {"attention": "ours" if on_gpu else "SDPA", "steps": args.steps, "batch": BATCH, "lr": LR, "seed": SEED}
    checkpoint.save(model, args.out, **best, **how, text=TEXT.name, **where())
    check(args.out)
    harness.say(f"{args.out}: {Path(args.out).stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
