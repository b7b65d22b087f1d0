"""For `worker`: compile launches that the interpreter ran, and find the line that the compiler refuses."""

import base64
import contextlib
import os
import re
from types import FunctionType

from flashlib.kernels.compiler import constants, launch_log, sources
from flashlib.kernels.compiler.compiling_launcher import CompilingLauncher, Enough
from flashlib.learner import pickling
from flashlib.private_apis import of_compiler, of_kernels

LOCATED = re.compile(r"^(.+?):(\d+):\d+: error: (.+)", re.MULTILINE)
ERROR = re.compile(r"\berror: (.+)|ptxas fatal\s*: (?:\(\w+\) )?(.+)")
HOPPER = 90  # the GPU that the course's Gluon is for
LOG = 2  # the file that the compiler writes to from C++


def answer(launches: CompilingLauncher, request: dict) -> dict:
    """Return {"refused": what the compiler refuses, or {} if it refuses nothing}.

    request: launches, the parcel of a list of `launch_log.NotedLaunch`; room: {capability: bytes of shared
    memory}. A refusal has because, a sentence; at, the lines that led there as (text of a function, line), the
    innermost last; launch, its kernel and constants; capability.
    """
    of_compiler.ptxas()
    pickled, files = request["launches"]
    found = pickling.loads(pickling.Parcel(base64.b64decode(pickled), files, has_kernels=True))
    for capability, room in request["room"].items():
        of_compiler.pretend_gpu(int(capability))
        for launch in found:
            if of_kernels.is_gluon(launch.kernel) and int(capability) != HOPPER:
                continue
            if refused := _refused(launches, launch, room):
                about = {"launch": launch_log.launch_text(launch), "capability": int(capability)}
                return {"refused": refused | about}
    return {"refused": {}}


def _refused(launches: CompilingLauncher, launch: launch_log.NotedLaunch, room: int) -> dict:
    """Return why the compiler refuses a launch, {} if it does not. room: bytes of shared memory."""
    launches.prepare(None, "cubin")
    taken = 0

    def stop(shared):
        nonlocal taken
        taken = shared
        raise Enough

    part = contextlib.nullcontext() if launch.whole else of_compiler.stopped_at_shared_memory(stop)
    before = os.fstat(LOG).st_size
    try:
        with contextlib.redirect_stdout(launches.log), contextlib.suppress(Enough), part:
            launch.kernel.run(*launch.arguments, grid=(1,), warmup=True, **launch.options)
            taken = launches.compiled.metadata.shared
    except (OSError, ImportError, MemoryError):  # of this computer
        raise
    except Exception as error:
        log = os.pread(LOG, os.fstat(LOG).st_size - before, before).decode(errors="replace")
        return _message(error, log, launch)
    said = f"a program takes {taken} bytes of shared memory, and the GPU has {room}: choose smaller tiles"
    return {"because": f"{said}, or fewer", "at": []} if taken > room else {}


def _message(error: BaseException, log: str, launch: launch_log.NotedLaunch) -> dict:
    """Return the message of an error or of the log, without the dump of the program that may follow it."""
    chain = [error]
    while chain[-1].__cause__:
        chain.append(chain[-1].__cause__)
    at = list(filter(None, map(of_compiler.located, chain)))
    said = [of_compiler.refusal(one) for one in chain]
    because = next(filter(None, reversed(said)), type(error).__name__)
    if not at and (found := LOCATED.search(log)):
        at = _line_of(found[1], int(found[2]), launch)
    because = errors_in(log) or errors_in(because) or " ".join(because.split())
    return {"because": constants.in_words(because, at), "at": at}


def errors_in(log: str) -> str:
    """Return the messages of a log's lines with "error:", "" if there are none."""
    return "; ".join(dict.fromkeys(first or second for first, second in ERROR.findall(log)))


def _line_of(file: str, line: int, launch: launch_log.NotedLaunch) -> list:
    """Return the functions of a launch that contain this line of a file, as [(text, line in the text)]."""
    functions: dict[FunctionType, int] = {}
    sources.described(launch, functions)
    found = []
    for function in functions:
        text, first = sources.source(function)
        if function.__code__.co_filename == file and first <= line < first + text.count("\n") + 1:
            found.append((text, line - first + 1))
    return found
