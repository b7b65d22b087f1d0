"""`run` under torchrun: this process is one of the ranks that torchrun has started, on one host or several."""

import atexit
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from flashlib.ring.processes import failure_report, packing, waits


def started() -> bool:
    """Return whether torchrun has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def run(function: Callable, arguments: tuple, ranks: int | None, seconds: float, backend: str) -> list[Any]:
    """Return on every rank what all ranks returned; an error is raised only on the rank where it occurs.

    Further runs use the same group, with the `backend` and `seconds` of the first run.
    """
    import torch.distributed as dist

    running = int(os.environ["WORLD_SIZE"])
    if ranks not in (None, running):
        raise ValueError(
            f"run() asks for {ranks} ranks and torchrun has started {running}: give both the same number"
        )
    if not dist.is_initialized():  # a second group would read what the first has left in torchrun's store
        dist.init_process_group(backend, timeout=timedelta(seconds=seconds))
        atexit.register(_leave)
    try:
        with waits.calls_counted():
            return [packing.unpack(packed) for packed in _gathered(packing.pack(function(*arguments)))]
    except RuntimeError as error:
        if failure_report.cause(error) == "timed out":
            site = waits.site_of_error(error)._replace(call="wait")
            error.add_note(waits.sentence(rank := dist.get_rank(), {rank: site}, set()))
        raise


def _leave():
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()


def _gathered(packed):
    """Return the bytes of all ranks. They travel as tensors: first their lengths, then the bytes, padded."""
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
