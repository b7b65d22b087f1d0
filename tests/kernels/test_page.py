"""docs/kernels.md: its examples run, without a GPU too, and all that it names exists."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest
import torch

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "kernels.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
THREE = [range(0, 3), range(4, 7), range(8, 11)]  # pieces
NAMES = sorted(set(re.findall(r"`(?:python -m )?(flashlib\.[\w.]+)", TEXT)))


@pytest.fixture(scope="module")
def ran():
    """The names that the code blocks define, run one after the other."""
    torch.manual_seed(0)
    names = {}
    for block in BLOCKS:
        exec(compile(block, "docs/kernels.md", "exec"), names)
    return names


def test_all_examples_run_and_names_exist(ran):
    assert len(BLOCKS) == 6 and len([line for line in BLOCKS[0].splitlines() if line]) == 5
    assert all(ran[X].grad.isfinite().all() for X in "QKV")
    assert ran["O"].shape == (2, 4, 1, 64) and ran["O"].isfinite().all() and ran["K_cache"].any()
    assert ran["weight"].grad.any()
    for name in set(re.findall(r"`kernels\.([\w.]+)", TEXT)):
        found = ran["kernels"]
        for part in name.split("."):
            found = getattr(found, part)


def test_modules_and_functions_on_the_page_exist():
    missing = []
    for name in NAMES:
        try:
            pkgutil.resolve_name(name)
        except (ImportError, AttributeError) as error:
            missing.append((name, error))
    assert NAMES and not missing


def refusals(kernels, masks):
    """Return {part of an error that the page quotes: a call that raises it}."""
    Q = torch.randn(1, 2, 20, 16, device=kernels.DEVICE)
    Qg, q, cache = Q.clone().requires_grad_(), Q[:, :, :1], Q.mT.contiguous().mT
    return {
        "pad Q, K and V": lambda: kernels.attention(*[Q[..., :8]] * 3),
        "pass one of flashlib.masks": lambda: kernels.attention(Q, Q, Q, mask=torch.ones(20, 20)),
        "one or two pieces": lambda: kernels.attention(
            Q[:, :, :9], Q, Q, mask=masks.placed(masks.alibi(1.0), 20, 20, THREE, range(20))
        ),
        "bias has dtype": lambda: kernels.attention(Q, Q, Q, mask=masks.bias(torch.zeros(20).double())),
        "a cache grows": lambda: kernels.decode.attention(q, Q, Q, mask=masks.documents([0] * 20)),
        "no backward": lambda: kernels.decode.attention(Qg, Q, Q),
        "a cache is not copied": lambda: kernels.decode.attention(q, cache, Q),
        "where no kernel runs": lambda: kernels.attention(*[Q.to("meta")] * 3),
        "cannot look into a mask": lambda: torch.compile(
            lambda X: kernels.attention(X, X, X, mask=masks.prefix(3)).O, backend="eager", fullgraph=True
        )(Q),
        "call flashlib.kernels.forward.attention": lambda: importlib.import_module(
            "flashlib.kernels.hopper.forward"
        ).attention(Q, Q, Q),
    }


def test_errors_quoted_on_the_page_are_raised(ran):
    calls = refusals(ran["kernels"], ran["masks"])
    rows = TEXT.partition("## What is refused")[2].partition("\n## ")[0]
    assert set(calls) == set(re.findall(r'Error, "(.*?)"', rows))
    for quoted, call in calls.items():
        with pytest.raises((TypeError, ValueError, RuntimeError), match=quoted):
            call()
