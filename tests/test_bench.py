"""The harness refuses wrong results, and what it writes can be read again."""

import json
import subprocess
import sys

import pytest
import torch

from flashlib.bench import harness


def test_a_result_twice_as_wrong_as_plain_attention_passes_and_no_worse_one():
    exact = torch.zeros(3, dtype=torch.float64)
    plain = torch.tensor([0.0, 0.5, 0.0])
    harness.verify("ours", torch.tensor([1.0, 0.0, -1.0]), exact, plain)
    with pytest.raises(AssertionError, match="ours is wrong: error 1.5, at most 1 accepted"):
        harness.verify("ours", torch.tensor([1.5, 0.0, 0.0]), exact, plain)
    with pytest.raises(AssertionError, match="error nan"):
        harness.verify("ours", torch.tensor([torch.nan, 0.0, 0.0]), exact, plain)


def test_a_record_is_json_with_a_row_a_line(tmp_path):
    record = {"gpu": "none", "rows": [{"d": 64, "tflops": {"ours": 1.5, "eager": None}}, {"d": 128, "tflops": {}}]}
    harness.write(tmp_path / "data" / "run.json", record)
    text = (tmp_path / "data" / "run.json").read_text()
    assert json.loads(text) == record
    assert sum('"d"' in line for line in text.splitlines()) == 2


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_it_says_so():
    run = subprocess.run([sys.executable, "-m", "flashlib.bench"], capture_output=True, text=True, timeout=120)
    assert run.returncode == 1 and run.stderr.startswith("The benchmark needs a CUDA device")
