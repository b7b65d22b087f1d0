"""Fourteen families of models: with our engines they are as close to float64 as with eager attention."""

import functools

import pytest

from tests import required

required.package("transformers", "run make models")

import torch  # noqa: E402

from flashlib.interop.transformers import register  # noqa: E402
from tests.interop.transformers import families  # noqa: E402
from tests.interop.transformers.families import FAMILIES, Family  # noqa: E402

ENGINES = ("kernels", "tiles", "torch_ref")
ROUNDING = 1e-7  # of the largest number, beside twice the error of eager


def logits_and_gradients(family: Family, model: torch.nn.Module):
    """Return the outputs and, of a random sum of them, the gradients of all weights."""
    X = family.output(model)
    weights = torch.randn(X.shape, generator=torch.Generator().manual_seed(2))
    (X * weights.to(X)).sum().backward()
    return X.detach(), {name: p.grad.cpu() for name, p in model.named_parameters() if p.grad is not None}


def cases():
    """Yield (family, engine, amount): each family is short once, few of them with the kernels."""
    for at, name in enumerate(FAMILIES):
        short = "kernels" if name in ("gemma2", "gpt_oss", "whisper") else ENGINES[1 + at % 2]
        yield from ((name, engine, "few" if engine == short else "all") for engine in ENGINES)


@functools.cache
def known(name):
    """Return what float64 gives, and what eager does."""
    family, wide = FAMILIES[name], families.inputs_in_double(FAMILIES[name])
    exact = families.exact(wide, functools.partial(logits_and_gradients, wide))
    return exact, logits_and_gradients(family, family.build("eager"))


def worst(given, exact):
    """Return the largest error and the largest number."""
    return (given.double() - exact).abs().max().item(), exact.abs().max().item()


@pytest.mark.parametrize("name, engine, amount", list(cases()))
def test_logits_and_gradients_are_as_accurate_as_eagers(name, engine, amount, device):
    family, (exact, eager) = FAMILIES[name], known(name)
    model = family.build(register(f"tested_{engine}", engine)).to(device)
    X, grads = logits_and_gradients(family, model)
    assert X.dtype == torch.float32 and exact[0].dtype == torch.float64
    error, largest = worst(X, exact[0])
    assert error <= 2 * worst(eager[0], exact[0])[0] + ROUNDING * largest
    assert grads.keys() == exact[1].keys()
    errors = [(worst(grads[p], exact[1][p]), worst(eager[1][p], exact[1][p])[0]) for p in grads]
    most = max(largest for (_, largest), _ in errors)
    largest_error = max(e for (e, _), _ in errors)
    assert largest_error <= 2 * max(e for _, e in errors) + ROUNDING * most
    assert 0 < error < float("inf") and largest_error < float("inf")  # inf would pass where eager's is inf too
    assert 0 < most < float("inf")  # NaN and an untouched weight would pass
