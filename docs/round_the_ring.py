"""A tensor of each rank travels round a ring, and every rank adds up what passes.

python docs/round_the_ring.py
python -m torch.distributed.run --nproc-per-node 4 docs/round_the_ring.py
"""

import os

import torch
import torch.distributed as dist

from flashlib.ring import processes


def add_what_passes(n: int) -> torch.Tensor:
    """Return the sum of all ranks' tensors, (n,)."""
    rank, P = dist.get_rank(), dist.get_world_size()
    here = torch.full((n,), float(rank + 1))
    total = here.clone()
    for _ in range(P - 1):
        arriving = torch.empty_like(here)
        sent = dist.P2POp(dist.isend, here, (rank + 1) % P)
        received = dist.P2POp(dist.irecv, arriving, (rank - 1) % P)
        for work in dist.batch_isend_irecv([sent, received]):
            work.wait()
        here = arriving
        total += here
    return total


if __name__ == "__main__":
    sums = processes.run(add_what_passes, 3)
    if os.environ.get("RANK", "0") == "0":  # under torchrun each rank has all sums
        print(sums)
