"""A Rule means the same in Triton and in NumPy."""

import pickle

import numpy as np
import pytest

pytest.importorskip("flashlib.kernels", exc_type=ImportError)

import torch  # noqa: E402

from flashlib.checks.chapters.scores import exercises_whole  # noqa: E402
from flashlib.checks.engine import Finding  # noqa: E402
from flashlib.checks.harness import rules  # noqa: E402
from flashlib.kernels import DEVICE, triton  # noqa: E402

tl = triton.language
RULES = [x for x in vars(exercises_whole).values() if isinstance(x, rules.Rule)]


@triton.jit
def _asked(out_ptr, b, h, first, f: tl.constexpr, SCORES: tl.constexpr):
    r, c = first + tl.arange(0, 32)[:, None], tl.arange(0, 16)[None, :]
    S = (r * 3 - c * 5) / 4.0
    found = f(S, b, h, r, c) if SCORES else tl.where(f(b, h, r, c), 1.0, 0.0)
    tl.store(out_ptr + tl.arange(0, 32)[:, None] * 16 + c, found)


@pytest.mark.parametrize("first", [-19, 0, 7])
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_triton_and_numpy_agree(rule, first):
    b, h = 1, 2
    out = torch.full((32, 16), torch.nan, device=DEVICE)
    scores = rule.name == "SCORE"
    _asked[(1,)](out, b, h, first, rule.kernel, scores)
    r, c = np.ogrid[first : first + 32, :16]
    right = rule(*([(r * 3 - c * 5) / 4] if scores else []), b, h, r, c)
    assert np.allclose(out.cpu().numpy(), np.broadcast_to(right, (32, 16)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "rule"), [("SEEN", rules.seen("c <= r")), ("SCORE", rules.score("S"))])
def test_a_call_with_wrong_arguments_is_reported_with_the_right_names(name, rule):
    for arguments in [(1, 2), (1,) * 6]:
        with pytest.raises(Finding) as found, rules.called():
            rule.kernel.fn(*arguments)
        assert found.value.id == "called_otherwise" and found.value.fields["name"] == name
    with pytest.raises(TypeError, match="of the learner"), rules.called():
        raise TypeError("of the learner")


def test_equal_rules_are_the_same_kernel_and_shown_as_their_text():
    rule = rules.seen("c <= r")
    assert rule.kernel is rules.seen("c <= r").kernel and repr(rule) == "c <= r"
    assert pickle.loads(pickle.dumps(rule)) == rule
