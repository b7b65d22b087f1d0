"""What the compiler makes of kernels that are written in a notebook."""

import base64
from collections.abc import Callable

from flashlib.inputs import check_counts
from flashlib.kernels.compiler import client, compiled
from flashlib.learner import pickling


def reports(
    call: Callable, kind: str, *, d: int, dtype: str = "bfloat16", causal: bool = False, capability: int = 90
) -> list[compiled.Compiled]:
    """Compile the kernels that a function launches, for any GPU, present or not, and report on each.

    call: takes Q, K, V of shape (B, H, N, d) and causal, if kind is "attention"; rows of d scores, if kind is
    "softmax". It runs in another process, as it is; only the launches are left out. Kernels are Triton's or
    Gluon's. dtype, capability: as `compiled.report` takes them. The reports have no SASS.
    Raises CompileError where the compiler cannot do it, where the function launches no kernel, and for what it
    raises; pickling.CannotBeSent where it uses something that cannot be sent to another process.
    """
    check_counts(at_least=1, d=d)
    pickled, sources, _ = pickling.dumps(call)
    asked = {"kernel": getattr(call, "__name__", kind), "d": d, "dtype": dtype, "causal": causal}
    sent = {"parcel": [base64.b64encode(pickled).decode(), sources], "call": kind, "shape": None, "until": "cubin"}

    def became(launched):
        return client.answered(asked | sent | {"capability": capability, "launched": launched})

    last = became(None)
    found = {last["names"][-1]: last}
    for name in last["names"]:
        found[name] = found.get(name) or became(name)
    return [
        compiled.made(found[name], **asked | {"kernel": name, "capability": capability})
        for name in dict.fromkeys(last["names"])
    ]
