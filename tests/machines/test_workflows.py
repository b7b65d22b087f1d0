"""The workflows: actions are pinned, rights are few, and their shell commands do what they should."""

import re
import subprocess
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
SITE = yaml.safe_load((ROOT / ".github" / "workflows" / "site.yml").read_text(encoding="utf-8"))
MADE = {"04_one_pass.ipynb": "{}", "05_tiling.ipynb": "{}"}


def git(folder, *arguments):
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_action_of_the_site_is_one_version():
    steps = [step for job in SITE["jobs"].values() for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert used and all(re.fullmatch(r"actions/[\w-]+@v\d+\.\d+\.\d+", one) for one in used)


def test_the_job_that_builds_may_not_write():
    """It installs other people's packages; the jobs that publish its result run none of them."""
    jobs = SITE["jobs"]
    assert SITE["permissions"] == {"contents": "read"} and "permissions" not in jobs["build"]
    for name in ("publish", "colab"):
        assert jobs[name]["needs"] == "build"
        assert not any("make" in step.get("run", "").split() for step in jobs[name]["steps"])


@pytest.mark.process
def test_the_branch_has_only_the_notebooks_each_time(tmp_path):
    (push,) = (step["run"] for step in SITE["jobs"]["colab"]["steps"] if "run" in step)
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "origin")
    for n in (1, 2):
        clone = tmp_path / f"clone{n}"
        git(tmp_path, "clone", "-q", "origin", clone)
        (clone / "kept.txt").write_text(str(n))
        (clone / ".gitignore").write_text("*.tmp")
        git(clone, "add", "-A")
        git(clone, "-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "c")
        git(clone, "push", "-q", "origin", "HEAD:main")
        (clone / "made").mkdir()
        for name, text in MADE.items():
            (clone / "made" / name).write_text(text * n)
        commit = git(clone, "rev-parse", "HEAD")
        subprocess.run(["bash", "-e", "-o", "pipefail", "-c", push], cwd=clone, check=True)
        origin = tmp_path / "origin"
        assert set(git(origin, "ls-tree", "-r", "--name-only", "colab").splitlines()) == MADE.keys()
        assert git(origin, "show", "colab:04_one_pass.ipynb") == "{}" * n
        assert git(origin, "log", "--format=%s", "colab") == f"Notebooks for Colab, made from {commit}"
        assert git(origin, "show", "main:kept.txt") == str(n)
