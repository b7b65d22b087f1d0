"""The peers find the modules that they import when they are called."""

from flashlib.bench.common import peers
from flashlib.private_apis import of_torch


def test_flex_attention_may_be_compiled_for_each_shape(monkeypatch):
    called = []
    monkeypatch.setattr(of_torch, "let_flex_recompile", lambda: called.append(True))
    assert callable(peers.compiled_flex.__wrapped__()) and called
