"""transformers' own test of attentions passes with ours: in 24 cases of each family; in one it asks for P."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests import required

required.package("transformers", "run make models")

ROOT = Path(__file__).resolve().parents[3]
SOURCES = "transformers==5.24.0 --hash=sha256:906cb8c3cb2123575e263962586a4d21a979ce97feeb95fe6aaf66fe6ae88bf3\n"
FAMILIES = ("llama", "mistral", "qwen3", "gemma3", "bert")


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Fetch the sources of transformers, by their hash, as released on PyPI."""
    folder = tmp_path_factory.mktemp("sources")
    (folder / "requirements.txt").write_text(SOURCES)
    pip = (sys.executable, "-m", "pip", "download", "--no-deps", "--no-build-isolation", "--no-binary", ":all:")
    where = ("--require-hashes", "-d", str(folder), "-r", str(folder / "requirements.txt"))
    done = subprocess.run([*pip, *where], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


@pytest.mark.process
@pytest.mark.parametrize("engine, families", [("torch_ref", FAMILIES), ("kernels", FAMILIES[:3])])
def test_their_own_test_passes_with_ours(engine, families, sources, tmp_path):
    script = Path(__file__).parent / "theirs.py"
    variables = os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script), str(sources), engine, *families],
        cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said == {name: {"cases": 25, "refused": 1, "skipped": 0, "wrong": []} for name in families}
