"""Run DeepSpeed's Ulysses with our attention, and our own Ulysses, on 4 processes: make deepspeed.

O and the gradients of both are compared with attention on one process in float64. DeepSpeed (25 MB) is installed
into a folder in the user's cache.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from flashlib.interop import weights

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("einops==0.8.2", "hjson==3.1.0", "msgpack==1.2.4", "ninja==1.13.2", "py-cpuinfo==9.0.0")
PACKAGES = ("deepspeed==0.19.8", *NEEDED)  # and pydantic and tqdm, which transformers brings
RANKS, B, N, H, H_k, d = 4, 2, 64, 8, 4, 16


def folder() -> Path:
    """Install DeepSpeed if necessary; return its folder."""
    where = weights.folder().parent.parent / "deepspeed-0.19.8"
    if not (where / "ready").exists():
        print(f"Installing DeepSpeed into {where}.", flush=True)
        pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--upgrade")
        variables = os.environ | {"DS_BUILD_OPS": "0"}
        subprocess.run([*pip, "--target", str(where), *PACKAGES], env=variables, check=True)
        (where / "ready").touch()
    return where


def on_a_rank():
    """Compute attention in both ways, and print on rank 0 how far each is from float64."""
    import deepspeed.comm
    import torch
    import torch.distributed as dist

    from flashlib import kernels, torch_ref
    from flashlib.interop import deepspeed as adapter
    from flashlib.ring.distributed import training, ulysses

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    theirs = adapter.ulysses(causal=True)
    deepspeed.comm.init_distributed(dist_backend="gloo", verbose=False)
    g = torch.Generator().manual_seed(0)
    whole = [torch.randn(B, N, h, d, generator=g) for h in (H, H_k, H_k)]
    dO = torch.randn(B, N, H, d, generator=g)
    exact = _gradients(lambda *X: torch_ref.attention(*map(_heads_first, X), causal=True).O.transpose(1, 2),
                       [X.double() for X in whole], dO.double())  # fmt: skip

    def ours(*X):
        O = ulysses.attention(*map(_heads_first, X), causal=True, layout="contiguous").O
        return O.transpose(1, 2)

    def part(X):
        return training.split(X, dim=1, layout="contiguous")

    for name, attend in (("DeepSpeed's with our kernels", theirs), ("ours", ours)):
        found = _gradients(attend, [part(X) for X in whole], part(dO))
        errors = torch.stack([(X - part(Y)).abs().max() for X, Y in zip(found, exact, strict=True)])
        dist.all_reduce(errors, dist.ReduceOp.MAX)
        if dist.get_rank() == 0:
            print(f"{name:30} O, dQ, dK, dV differ from float64 by " + " ".join(f"{e:.1e}" for e in errors))
        assert errors.max() < 1e-5
    assert kernels.INTERPRETED or torch.cuda.is_available()
    dist.destroy_process_group()


def _heads_first(X):
    return X.transpose(1, 2)


def _gradients(attend, tensors, dO):
    tensors = [X.detach().clone().requires_grad_() for X in tensors]
    O = attend(*tensors)
    O.backward(dO)
    return [O.detach(), *(X.grad for X in tensors)]


def main():
    path = os.pathsep.join([str(folder()), str(ROOT)])
    variables = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu"}
    launch = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS), "--standalone")
    done = subprocess.run([*launch, str(Path(__file__).resolve()), "--rank"], env=variables, timeout=600)
    sys.exit(done.returncode)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", action="store_true")
    on_a_rank() if parser.parse_args().rank else main()
