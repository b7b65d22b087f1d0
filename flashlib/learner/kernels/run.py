"""Record what a learner's function launches, in a process of its own with limits."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flashlib.kernels import DEVICE, INTERPRETED
from flashlib.learner import process
from flashlib.learner.kernels.new_tensors import NewTensors
from flashlib.learner.kernels.recorder import record
from flashlib.learner.kernels.recording import Recording
from flashlib.learner.pickling import CannotBeSent
from flashlib.learner.stubs import is_stub, name_of
from flashlib.private_apis import of_kernels

LIMIT = 15.0  # seconds of computing
UNSOLVED = "{0} is not solved yet: there is nothing to show"
COMPILED = (
    "a kernel is watched in Triton's interpreter, and here kernels are compiled for a GPU: "
    "set TRITON_INTERPRET=1 before Python starts"
)


def recorded(
    launch: Callable, *arguments: Any, limit: float | None = None, **options: Any
) -> tuple[Recording, str]:
    """Return the Recording of launch(*arguments, **options), run in another process, and what it printed.

    Arrays among the arguments become tensors. Raises ValueError or TypeError, with a sentence, where there is
    nothing to record.
    """
    check(launch)
    name = name_of(launch)
    try:
        recording, printed = process.call(_recorded, launch, arguments, options, limit=limit or LIMIT)
    except process.RaisedByAnswer as error:
        raise ValueError(f"{name} raises {error}") from None
    except process.NotEnded as error:
        raise ValueError(f"{name} {error.sentence}") from None
    except CannotBeSent as error:
        raise ValueError(
            f"{name} uses something that cannot be sent to the process that runs it: {error}"
        ) from None
    except OSError as error:
        raise ValueError(f"the process that runs {name} cannot start: {error}") from None
    except RuntimeError as error:
        raise ValueError(f"{name} cannot be run in a process of its own: {str(error).splitlines()[-1]}") from None
    if recording.error.startswith("NotImplementedError"):
        raise ValueError(UNSOLVED.format(name))
    return recording, printed


def check(launch: Any) -> None:
    """Raise ValueError or TypeError, with a sentence, where it is plain that there is nothing to record."""
    name = name_of(launch)
    if of_kernels.is_kernel(launch):
        raise TypeError(f"{name} is a kernel; pass the function that launches it")
    if not callable(launch):
        raise TypeError(f"a {name} was passed; pass the function that launches the kernel")
    if is_stub(launch):
        raise ValueError(UNSOLVED.format(name))
    if not INTERPRETED:
        raise ValueError(COMPILED)


def _recorded(launch, arguments, options):
    tensors = [torch.tensor(x, device=DEVICE) if isinstance(x, np.ndarray) else x for x in arguments]
    with NewTensors():  # so that elements never stored are nan
        return record(launch, *tensors, **options)
