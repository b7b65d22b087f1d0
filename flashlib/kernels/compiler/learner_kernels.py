"""What the compiler makes of kernels that are written in a notebook."""

import base64
from collections.abc import Callable
from typing import NamedTuple

from flashlib.inputs import check_counts
from flashlib.kernels.compiler import client, compiled, launch_log, sources
from flashlib.kernels.compiler.occupancy import MULTIPROCESSORS
from flashlib.learner import pickling


def reports(
    call: Callable, kind: str, *, d: int, dtype: str = "bfloat16", causal: bool = False, capability: int | str = 90
) -> list[compiled.Compiled]:
    """Compile the kernels that a function launches, for any GPU, present or not, and report on each.

    call: takes Q, K, V of shape (B, H, N, d) and causal, if kind is "attention"; rows of d scores, if kind is
    "softmax"; Q, K, V, lengths, table and parts of a step of decoding over pages, if kind is "decode". It runs
    unchanged in another process, except that nothing is launched. Kernels are in Triton or Gluon. dtype,
    capability: as `compiled.report` takes them. The reports have no SASS.
    Raises CompileError if the compiler cannot do it, if the function launches no kernel, and if the function
    raises; pickling.CannotBeSent if it uses something that cannot be sent to another process.
    """
    check_counts(at_least=1, d=d)
    with pickling.by_value(call, client.ROOT.resolve()):
        pickled, files, _ = pickling.dumps(call)
    asked = {"kernel": getattr(call, "__name__", kind), "d": d, "dtype": dtype, "causal": causal}
    parcel = base64.b64encode(pickled).decode(), files
    sent = {"parcel": parcel, "key": sources.digest(call), "call": kind, "shape": None, "until": "cubin"}

    def became(launched):
        return client.compile_for_gpu(asked | sent | {"capability": capability, "launched": launched})

    last = became(None)
    found = {last["names"][-1]: last}
    for name in last["names"]:
        found[name] = found.get(name) or became(name)
    return [
        compiled.from_answer(found[name], **asked | {"kernel": name, "capability": capability})
        for name in dict.fromkeys(last["names"])
    ]


MANY = 5  # times the time limit of one launch: for several launches, each for two GPUs


class Refusal(NamedTuple):
    """A launch that the compiler refuses.

    because: why. launch: its kernel and constants, "" if not known. capability: of the GPU. line, number: the text
    of the line and its place in the cell or file, "" and 0 if not known.
    """

    because: str
    launch: str
    capability: int
    line: str = ""
    number: int = 0


def refusal(sent: launch_log.LaunchParcel, capabilities: tuple[int, ...] = (80, 90)) -> Refusal | None:
    """Compile launches for some GPUs; return the first that the compiler refuses, or None.

    Raises CompileError if it cannot tell, OSError if nothing can be written.
    """
    pickled, files, _ = sent.parcel
    room = {capability: MULTIPROCESSORS[capability].gpu.block_sram for capability in capabilities}
    parcel = base64.b64encode(pickled).decode(), files
    try:
        request = {"launches": parcel, "key": sent.key, "room": room, "until": "cubin", "times": MANY}
        found = client.compile_request(request)["refused"]
    except client.Crashed as error:
        return Refusal(str(error), "", capabilities[0])
    if not found:
        return None
    refused = Refusal(found["because"], found["launch"], found["capability"])
    for text, at in found["at"]:  # the innermost of the learner's lines
        if text in sent.places:
            line = text.splitlines()[at - 1].strip()
            refused = refused._replace(line=line, number=sent.places[text] + at - 1)
    return refused
