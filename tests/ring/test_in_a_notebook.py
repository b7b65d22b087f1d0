"""A function defined in a cell runs on ranks, its error names the cell, and nothing outlives the kernel."""

import os
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")
nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

CELLS = [
    """import os, time
from flashlib.ring import processes
offset = 2""",
    """def mine(n):
    import torch, torch.distributed as dist
    x = torch.full((n,), float(dist.get_rank() + offset))
    dist.all_reduce(x)
    print("sum", int(x[0]))
    return x

start = time.monotonic()
sums = processes.run(mine, 3)
first = time.monotonic() - start
start = time.monotonic()
processes.run(mine, 3)
print(f"seconds {first:.2f} {time.monotonic() - start:.2f}")
print([x.tolist() for x in sums])""",
    """def broken():
    import torch.distributed as dist
    return 1 / (dist.get_rank() - 1)

processes.run(broken)""",
    """from flashlib.ring.processes import launcher_connection
print(launcher_connection._connection.process.pid)""",
]


@pytest.mark.process
def test_a_function_of_a_cell(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
    client = nbclient.NotebookClient(notebook, timeout=100, allow_errors=True)
    client.execute()
    outputs = [
        "".join(out.get("text") or "\n".join(out.get("traceback", [])) for out in cell.outputs)
        for cell in notebook.cells
    ]
    lines = outputs[1].splitlines()
    assert lines[:4] == [f"rank {rank} | sum 14" for rank in range(4)]
    assert lines[-1] == f"{[[14.0] * 3] * 4}"
    print(lines[-2])  # pytest -s shows it
    assert "rank 1 raised ZeroDivisionError" in outputs[2] and "return 1 / (dist.get_rank() - 1)" in outputs[2]
    assert 'File "<cell>", line 3, in broken' in outputs[2] and "rank.py" not in outputs[2]
    launcher = Path(f"/proc/{int(outputs[3])}")
    until = time.monotonic() + 30
    while launcher.exists() and os.path.exists("/proc") and time.monotonic() < until:
        time.sleep(0.1)
    assert not launcher.exists(), "the kernel has ended"
