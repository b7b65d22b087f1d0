"""Sends requests to the process that compiles, and keeps its answers for this run and later ones."""

import atexit
import contextlib
import contextvars
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import triton

from flashlib.kernels.compiler import trial
from flashlib.kernels.compiler.occupancy import MULTIPROCESSORS
from flashlib.private_apis import of_compiler

TIME_LIMIT = 60  # seconds; tiles far too large can take minutes
ROOT = Path(__file__).parents[3]
NO_GPU = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}  # of NVIDIA's, of AMD's


class CompileError(RuntimeError):
    """The request was valid, but the compiler could not do it."""


class Cancelled(CompileError):
    """Nobody is waiting for the answer any more."""


class Crashed(CompileError):
    """The compiler ended without an answer, as it does on a failed assertion."""


class Wanted:
    """Whether an answer is still wanted. To be able to cancel a request, set WANTED to one of these first."""

    def __init__(self) -> None:
        self.cancelled, self._lock = False, threading.Lock()
        self._end: Callable[[], object] | None = None

    def cancel(self) -> None:
        """End the process that works on the answer, from any thread; if it has not started, it will not start."""
        with self._lock:
            self.cancelled = True
            if self._end:
                self._end()

    @contextlib.contextmanager
    def ended_by(self, end: Callable[[], object]) -> Iterator[None]:
        """Inside this context `cancel` calls `end`; if it was cancelled before, `end` is called at once."""
        with self._lock:
            self._end = end
            if self.cancelled:
                end()
        try:
            yield
        finally:
            with self._lock:
                self._end = None


WANTED = contextvars.ContextVar("wanted", default=None)  # None: nobody will cancel it


class Compiler:
    """The process `kernels.compiler.worker`, started on the first request and kept: starting takes longest."""

    def __init__(self) -> None:
        self.process: Any = None  # a Popen
        self.lock = threading.Lock()
        self.sources = None  # hash of the sources that the process has read
        atexit.register(self.stop)

    def ask(self, request: dict) -> dict:
        """Return the answer to one request; raise CompileError if none comes, Cancelled if WANTED was cancelled.

        Answers are kept in Triton's cache until a source or Triton changes: a minute's work of one process is not
        repeated by the next. TRITON_ALWAYS_COMPILE=1 ignores kept answers.
        """
        try:
            return self._ask(request)
        except OSError as error:
            raise CompileError(
                f"the compiler needs a folder that it can write ({error}): set TMPDIR and TRITON_CACHE_DIR "
                "to one before Python starts"
            ) from error

    def _ask(self, request):
        with self.lock:
            of_compiler.ensure_cache()  # first: answers depend on Triton's variables
            sources, anew = _sources(), of_compiler.compiles_always()
            manager, until = _manager(request, sources), request["until"]
            if not anew and (answer := _kept(manager, until)):
                return answer
            if (wanted := WANTED.get()) and wanted.cancelled:
                raise Cancelled("it was cancelled")
            if self.sources != sources:
                self.stop()
            if self.process is None or self.process.poll() is not None:
                self.start()
                self.sources = sources
            answer = self._answer(request)
            missing = "error" in answer or until == "sass" and _ends_early(answer)
            if not anew and not missing:
                with contextlib.suppress(OSError):  # the disk is full: the answer is computed again next time
                    manager.put(json.dumps(answer), f"{until}.json", binary=False)
            return answer

    def _answer(self, request):
        late, wanted = threading.Event(), WANTED.get() or Wanted()
        limit = TIME_LIMIT * request.get("times", 1)
        timer = threading.Timer(limit, lambda: (late.set(), self.kill()))
        timer.daemon = True  # Python does not wait for it at its end
        timer.start()
        try:
            with wanted.ended_by(self.kill):
                self.process.stdin.write(json.dumps(request) + "\n")
                self.process.stdin.flush()
                line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        except BaseException:  # an answer that nobody reads would be taken for the next one
            self.kill()
            raise
        finally:
            timer.cancel()
        whole = line.endswith("\n") and not wanted.cancelled
        return json.loads(line) if whole else self._ended(late.is_set(), wanted.cancelled, limit)

    def start(self) -> None:
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        # Triton must compile, and this process must not see a GPU.
        env = os.environ | {"TRITON_INTERPRET": "0", "PYTHONPATH": path} | NO_GPU
        self.stop()
        self.log = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "flashlib.kernels.compiler.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=env,
            start_new_session=True,  # an interrupt of the notebook must not reach it, and ptxas ends with it
        )  # fmt: skip

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()

    def stop(self) -> None:
        if self.process:
            if self.process.poll() is None:
                self.kill()
            self.process.communicate()
            self.log.close()
            self.process = None

    def _ended(self, late, cancelled, limit):
        self.kill()  # it may have been cancelled after its last output
        self.process.wait()
        self.log.seek(0)
        lines = self.log.read().split("\n")
        self.stop()
        if cancelled:
            raise Cancelled("it was cancelled")
        if late:
            raise CompileError(
                f"the compiler took longer than {limit} seconds: choose smaller tiles or more warps"
            )
        last = next((line.strip() for line in reversed(lines) if line.strip()), "nothing")
        said = trial.errors_in("\n".join(lines)) or last
        raise Crashed(f"the compiler ended without an answer; it last said: {said}")


def _ends_early(answer):
    """Return whether the listing of the GPU's code is missing because there is no disassembler."""
    return not (answer.get("sass") or answer.get("amdgcn"))


def _kept(manager, until):
    """Return an answer that was kept, or None; an answer with SASS contains all the others."""
    if path := manager.get_file(f"{until}.json"):
        return json.loads(Path(path).read_text(encoding="utf-8"))
    return _kept(manager, "sass") | {"sass": ""} if until != "sass" and manager.get_file("sass.json") else None


def _manager(request, sources):
    """Return the folder of Triton's cache for a request, which does not depend on how far it is compiled.

    A request with pickled functions is identified by its key, since pickles differ between sessions.
    """
    left_out = {"until", "parcel", "launches"} if "key" in request else {"until"}
    key = {name: value for name, value in request.items() if name not in left_out}
    return of_compiler.cache_of(hashlib.sha256(f"{json.dumps(key)}{sources}".encode()).hexdigest())


def _sources():
    """Return a hash of everything but the request that answers depend on."""
    flashlib = ROOT / "flashlib"
    others = "types.py", "inputs.py", "gpus.py", "learner/pickling.py", "private_apis/of_compiler.py"
    sources = sorted([*flashlib.glob("kernels/**/*.py"), *(flashlib / name for name in others)])
    variables = sorted(item for item in os.environ.items() if item[0].startswith("TRITON_"))
    text = repr(([path.read_text(encoding="utf-8") for path in sources], triton.__version__, variables))
    return hashlib.sha256(text.encode()).hexdigest()


def compile_for_gpu(request: dict) -> dict:
    """Add the GPU's resources to a request, and return the answer as `compile_request` does."""
    gpu = MULTIPROCESSORS[request["capability"]].gpu
    return compile_request(request | {"room": gpu.block_sram, "sms": gpu.sms})


def compile_request(request: dict) -> dict:
    """Return the answer of `worker` to a complete request; raise the error that it names."""
    became = _compiler.ask(request)
    if "error" in became:
        name, sentence = became["error"]
        raise {"TypeError": TypeError, "ValueError": ValueError}.get(name, CompileError)(sentence)
    return became


_compiler = Compiler()
