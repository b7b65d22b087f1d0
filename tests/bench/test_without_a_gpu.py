"""A benchmark that needs a GPU says so in one line where there is none, and writes nothing."""

import importlib.util
import runpy
import sys

import pytest
import torch

SAID = {
    "clocks": "The units are timed on a GPU of compute capability 9.0",
    "backward_ladder": "The ladder is timed on a CUDA device",
    "counters": "The counters need a CUDA device",
    "fp8": "Eight bits are timed on a GPU of compute capability 9.0",
    "gpt": "The GPT is trained on a CUDA device",
    "hopper": "The Hopper kernel is timed on a GPU of compute capability 9.0",
    "hopper_backward_ladder": "The Hopper kernel is timed on a GPU of compute capability 9.0",
    "hopper_ladder": "The Hopper kernel is timed on a GPU of compute capability 9.0",
    "hopper_rescaling": "The Hopper kernel is timed on a GPU of compute capability 9.0",
    "ladder": "The ladder is timed on a CUDA device",
    "limits": "The ladder is timed on a CUDA device",
    "models": "Models are timed on a CUDA device",
    "ring": "Rings are timed on two or more GPUs of one host; torch finds fewer",
    "serve": "Writing is timed on a CUDA device; torch finds none",
    "timelines": "Timelines are recorded on a GPU of compute",
    "tune": "There is no CUDA device to tune for",
}
WITH_RECORD = (
    "clocks", "fp8", "hopper", "hopper_backward_ladder", "hopper_ladder", "hopper_rescaling", "models", "ring",
    "serve", "timelines",
)  # fmt: skip


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("name", SAID)
def test_it_says_so(name, monkeypatch, capsys, tmp_path):
    given = ["--out", str(tmp_path / "record.json")] if name in WITH_RECORD else []
    monkeypatch.setattr(sys, "argv", [name, *given])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(importlib.util.find_spec(f"flashlib.bench.{name}").origin, run_name="__main__")
    said = capsys.readouterr().err or f"{end.value.code}\n"
    assert end.value.code not in (0, None) and said.startswith(SAID[name])
    assert len(said.splitlines()) == 1 and not list(tmp_path.iterdir())
