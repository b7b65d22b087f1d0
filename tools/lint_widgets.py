"""Check the JavaScript of the widgets with oxlint, each script joined from its files as a page gets it.

A name in a shared file that one widget does not use is not a fault; one that no widget uses is.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from flashlib import widgets
from flashlib.widgets.compiler_lab import CompilerLab
from flashlib.widgets.prediction_card.prediction_card import PredictionCard

CLASSES = [CompilerLab, PredictionCard, *(getattr(widgets, name) for name in widgets.__all__)]
CONFIG = {
    "env": {"browser": True, "es2024": True},
    "categories": {"correctness": "error"},
    "rules": {"no-undef": "error", "no-var": "error", "prefer-const": "error"},
}


def faults(scripts) -> list[str]:
    """Return what oxlint finds in scripts, {name: text}: the message, the names and the line of code of each."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "oxlintrc.json")
        config.write_text(json.dumps(CONFIG), encoding="utf-8")
        for name, text in scripts.items():
            Path(folder, f"{name}.js").write_text(text, encoding="utf-8")
        command = [str(Path(sys.executable).with_name("oxlint")), "-c", str(config), "--format=json", folder]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    found = {}  # (message, line, unused): names of scripts
    for one in json.loads(done.stdout)["diagnostics"]:
        name = Path(one["filename"]).stem
        number = one["labels"][0]["span"]["line"]
        key = one["message"], scripts[name].split("\n")[number - 1], "no-unused" in one.get("code", "")
        found.setdefault(key, set()).add(name)
    return [
        f"{', '.join(sorted(names))}: {message}\n    {line.strip()}"
        for (message, line, unused), names in found.items()
        if not unused or names == {name for name, text in scripts.items() if line in text.split("\n")}
    ]


if __name__ == "__main__":
    found = faults({cls.__name__: cls._script for cls in CLASSES})
    print("\n".join(found) or "The widgets' JavaScript: no faults.")
    sys.exit(bool(found))
