"""The process that compiles kernels for any GPU, present or not: `python -m flashlib.kernels.compiler.worker`.

`client` starts it, because in a notebook without a GPU Triton decides once and for all to interpret. It reads each
request as a line of JSON from stdin and writes the answer as a line of JSON to stdout, until stdin ends. The
launch code of the kernels runs unchanged, on tensors in the computer's memory, under a driver that knows a GPU's
capability but has no GPU; only the launch itself is left out.
"""

import base64
import contextlib
import importlib
import json
import os
import re
import sys

import torch
import triton

from flashlib.kernels.compiler import kernel_report, listings, trial
from flashlib.kernels.compiler.compiling_launcher import CompilingLauncher, Enough
from flashlib.kernels.compiler.makers import maker_of
from flashlib.kernels.launch import inputs, tile_sizes, which_gpu
from flashlib.learner import pickling
from flashlib.private_apis import of_compiler

SHAPE = 2, 2, 2, 4096  # B, H_q, H_k, N of the tensors: long, and a multiple of 16, which Triton exploits
INTERNAL = "Triton's compiler gave up"


def pretend(capability: int | str, room: int, sms: int) -> None:
    """Make kernels choose and compile for a GPU that need not be present. room: bytes of its shared memory."""
    of_compiler.pretend_gpu(capability)
    of_nvidia = divmod(capability, 10) if isinstance(capability, int) else (0, 0)
    which_gpu.capability = lambda device: of_nvidia
    gpu = tile_sizes.Room.of(room, sms, maker_of(capability).lanes, of_nvidia)
    tile_sizes.room = lambda device: gpu  # type: ignore[assignment]


def answer(launches: CompilingLauncher, request: dict) -> dict:
    """Return the answer to a request, which `registry` checked; raise what the kernel's own checks raise."""
    sms = request["sms"] if request["shape"] else 0  # without a shape there are enough programs
    pretend(request["capability"], request["room"], sms)
    launches.prepare(request["launched"], request["until"])
    only_ttgir = request["until"] == "ttgir"
    stopped = of_compiler.stopped_at_ttgir(launches.stop) if only_ttgir else contextlib.nullcontext()
    with contextlib.redirect_stdout(launches.log), contextlib.suppress(Enough), stopped:
        _launch(request)  # Triton prints what ptxas says
    if launches.options is None:
        raise ValueError(f"{request['kernel']} launched no kernel")
    options = launches.options
    stages = options.get("num_stages", options.get("STAGES"))  # Gluon's are slots
    config = [options.get("B_R"), _keys_of_a_tile(options), options.get("num_warps"), stages]
    asked = {"config": config}  # of the launch; with roles, more warps are compiled
    if request["until"] == "config":
        return asked
    if only_ttgir:
        ttgir = listings.readable("ttgir", launches.ttgir)
        return asked | {"ttgir": ttgir, "compile_options": launches.compile_options}
    compiled = launches.compiled
    of_maker = kernel_report.REPORTS[maker_of(request["capability"]).name]
    became = of_maker(compiled, launches.log.getvalue(), disassembled=request["until"] == "sass")
    chosen = {
        "B_r": config[0],
        "B_c": config[1],
        "shared": compiled.metadata.shared,
        "num_warps": compiled.metadata.num_warps,
        "num_stages": options.get("STAGES", compiled.metadata.num_stages),
        "descriptors": options.get("DESCRIPTORS"),
        "compile_options": launches.compile_options,
        "names": launches.names,
    }
    return asked | chosen | became


def _keys_of_a_tile(options):
    """Return B_C, which kernels in Gluon take from the descriptor of K; None if there is neither."""
    described = getattr(options.get("k_desc"), "block_shape", None)
    return described[-2] if described else options.get("B_C")


def _launch(request):
    inputs = _inputs(request)
    if "parcel" in request:  # a learner's function, with its arguments in this order
        pickled, sources = request["parcel"]
        call = pickling.loads(pickling.Parcel(base64.b64decode(pickled), sources, has_kernels=True))
        return call(*inputs, request["causal"]) if request["call"] == "attention" else call(*inputs)
    call = getattr(importlib.import_module(request["module"]), request["call"])
    options = (
        {} if request["call"] in ("softmax", "merge") else {"causal": request["causal"], **request["options"]}
    )
    return call(*inputs, **options)


def _inputs(request):
    dtype = getattr(torch, request["dtype"])
    if request["call"] == "softmax":
        return [torch.empty(4, request["d"], dtype=dtype)]
    if request["call"] == "decode":
        return _of_decoding(request["d"], dtype)
    B, H_q, H_k, N = request["shape"] or SHAPE
    Q, K = (torch.empty(B, H, N, request["d"], dtype=dtype) for H in (H_q, H_k))
    lse, O = torch.empty(B, H_q, N), torch.empty(Q.shape)
    of = {"attention": (Q, K, K), "backward": (Q, K, K, Q, lse, Q), "merge": (O, lse, O, lse, Q)}
    return of[request["call"]]


def _of_decoding(d, dtype):
    """Return Q, K, V, lengths, table and parts of a step of decoding for one sequence and 8 heads of K and V."""
    pool = 512, 8, 64, d
    lengths, table = (torch.zeros(shape, dtype=torch.int32) for shape in ((1,), (1, 512)))
    return torch.empty(1, 32, d, dtype=dtype), *(torch.empty(pool, dtype=dtype) for _ in "KV"), lengths, table, 16


def _sentence(error, own):
    """Return the name and text of the exception that the caller must raise. own: whether a learner's code ran."""
    if own and not isinstance(error, triton.TritonError):
        return "CompileError", f"{type(error).__name__}: {error}"
    if isinstance(error, (TypeError, ValueError)) and not isinstance(error, triton.TritonError):
        return type(error).__name__, str(error)
    text = str(error)
    if fatal := re.search(r"ptxas fatal\s*:\s*(?:\(\w+\) )?(.*)", text):
        return "CompileError", f"ptxas, which makes the GPU's code from PTX, refused it: {fatal[1]}"
    lines = [line for line in text.splitlines() if line.strip()] or [type(error).__name__]
    return "CompileError", f"{INTERNAL}: {trial.errors_in(text) or lines[-1].strip()}"


def main() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # other output must not come between the answers
    of_compiler.show_ptxas()
    inputs.check_device = lambda **_: None  # before the kernels import it
    launches = CompilingLauncher()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            became = trial.answer(launches, request) if "launches" in request else answer(launches, request)
        except Exception as error:
            became = {"error": _sentence(error, own="parcel" in request)}
        out.write(json.dumps(became) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
