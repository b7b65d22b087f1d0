"""The example in docs/ranks.md computes attention."""

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("cloudpickle")
from flashlib import torch_ref  # noqa: E402
from flashlib.ring import processes  # noqa: E402

PAGE = Path(__file__).parents[3] / "docs" / "ranks.md"


def test_the_example_is_attention():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    (block,) = (block for block in blocks if "ring.attention" in block)
    *given, call = block.strip().splitlines()
    assert call == "processes.run(my_attention, Q, K, V, ranks=4)"
    names = {"torch": torch, "processes": processes, "__name__": "__page__"}
    exec("\n".join(given), names)
    Q, K, V = (names[name].requires_grad_() for name in "QKV")
    O, _ = torch_ref.attention(Q, K, V, causal=True)
    O.sum().backward()
    for found_O, found_dK in processes.run(names["my_attention"], *(X.detach() for X in (Q, K, V)), ranks=4):
        torch.testing.assert_close(found_O, O.detach())
        torch.testing.assert_close(found_dK, K.grad, rtol=1e-4, atol=1e-5)
