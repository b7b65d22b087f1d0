"""The same run under torchrun: this process is one of the ranks that it has started, on one host or on several."""

import atexit
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from flashlib.ring.processes import told, values, waits


def started() -> bool:
    """Return whether torchrun has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def run(function: Callable, arguments: tuple, ranks: int | None, seconds: float, backend: str) -> list[Any]:
    """Return on every rank what all ranks returned; an error is raised on the rank that has it.

    The group stays for further runs: `backend` and `seconds` are those of the first one.
    """
    import torch.distributed as dist

    there = int(os.environ["WORLD_SIZE"])
    if ranks not in (None, there):
        raise ValueError(
            f"run() asks for {ranks} ranks and torchrun has started {there}: give both the same number"
        )
    if not dist.is_initialized():  # a second group would meet what the first has left in torchrun's store
        dist.init_process_group(backend, timeout=timedelta(seconds=seconds))
        atexit.register(_leave)
    try:
        with waits.noted():
            return [values.unpack(packed) for packed in _from_all(values.pack(function(*arguments)))]
    except RuntimeError as error:
        if told.cause(error) == "timed out":
            place = waits.place_of_error(error)._replace(call="wait")
            error.add_note(waits.sentence(rank := dist.get_rank(), {rank: place}, set()))
        raise


def _leave():
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()


def _from_all(packed):
    """Return the bytes of all ranks. They travel as tensors: of their sizes, then of the bytes, filled up."""
    import torch
    import torch.distributed as dist

    device = "cpu" if "gloo" in dist.get_backend_config() else "cuda"
    sizes = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, torch.tensor([len(packed)], device=device))
    most = max(int(size) for size in sizes)
    mine = torch.frombuffer(bytearray(packed.ljust(most, b"\0")), dtype=torch.uint8).to(device)
    parts = [torch.empty_like(mine) for _ in sizes]
    dist.all_gather(parts, mine)
    return [part.cpu().numpy().tobytes()[: int(size)] for part, size in zip(parts, sizes, strict=True)]
