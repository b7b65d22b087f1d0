"""The container for development of Codespaces and VS Code: the commands that it runs exist."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MADE = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
COMMANDS = [MADE["postCreateCommand"], MADE["postAttachCommand"]]


def test_its_commands_are_targets_and_install_no_cuda():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [command.split()[1] for command in COMMANDS]
    assert targets == ["setup", "lab"] and all(f"\n{target}: " in makefile for target in targets)
    assert "TORCH=cpu" in COMMANDS[0], "later commands find it in .venv"


def test_jupyterlab_answers_on_the_port_that_is_forwarded_and_only_to_the_pages_of_codespaces():
    (port,) = MADE["forwardPorts"]
    assert f"--port={port} " in COMMANDS[1] and str(port) in MADE["portsAttributes"]
    pattern = re.search(r"allow_origin_pat=(\S+?)'", COMMANDS[1])[1].replace("$$", "$")
    assert re.match(pattern, "https://a-b-8888.app.github.dev")
    for other in ("https://app.github.dev", "https://a.app-github.dev", "https://a.app.github.dev.b.org"):
        assert not re.match(pattern, other)


def test_its_python_is_accepted():
    version = re.search(r"python:1-3\.(\d+)-", MADE["image"])[1]
    least = re.search(r'requires-python = ">=3\.(\d+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))[1]
    assert int(version) >= int(least)
