"""Count, with Nsight Compute, the bytes that a GPU's memories move in one call of each attention.

    python -m flashlib.bench.counters --out notebooks/data/h200_counters.json

Bytes are counted in three places. At the SMs: what comes from the L2 cache and what goes to it. In the L2 cache:
what the SMs request, where one answer may serve several of them. At DRAM: what HBM reads and writes. Registers
that spill to local memory, because a tile is too large for them, are also counted separately: their stores leave
the SM. Each call is counted twice: with the caches emptied before every kernel ("cold"), and with the caches as
earlier kernels and the profiler leave them ("warm"). Needs a CUDA device, `ncu` on the path, and permission to
read the counters.
"""

import argparse
import csv
import itertools
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from flashlib import cost
from flashlib.bench.common import harness
from flashlib.bench.common.problem import BenchProblem, Size
from flashlib.types import Traffic

HEADS = 16  # of one sequence: enough row blocks for all SMs, or a backend might split K and V
DTYPE = "float16"
METRICS = {  # (metric of ncu, bytes of its unit)
    "sm_read": ("l1tex__m_xbar2l1tex_read_bytes.sum", 1),
    "sm_written": ("l1tex__m_l1tex2xbar_write_bytes.sum", 1),
    "l2_read": ("lts__t_sectors_srcunit_tex_op_read.sum", 32),
    "l2_written": ("lts__t_sectors_srcunit_tex_op_write.sum", 32),
    "dram_read": ("dram__bytes_read.sum", 1),
    "dram_written": ("dram__bytes_write.sum", 1),
    "spill_read": ("l1tex__t_bytes_pipe_lsu_mem_local_op_ld.sum", 1),
    "spill_written": ("l1tex__t_bytes_pipe_lsu_mem_local_op_st.sum", 1),
}
PLACES = ("sm", "l2", "dram")
UNITS = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "sector": 1, "": 1}
CACHES = {"cold": "all", "warm": "none"}  # ncu's --cache-control
BACKENDS = {
    "sdpa_math": SDPBackend.MATH,
    "sdpa_efficient": SDPBackend.EFFICIENT_ATTENTION,
    "sdpa_flash": SDPBackend.FLASH_ATTENTION,
    "sdpa_cudnn": SDPBackend.CUDNN_ATTENTION,
}


class CountedCall(NamedTuple):
    """One attention at one size. B_r and B_c: the tile of our kernel, 0 for the others."""

    name: str
    N: int
    d: int
    causal: bool = False
    B_r: int = 0
    B_c: int = 0

    @property
    def label(self) -> str:
        return "|".join(map(str, self))

    def run(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        """Return O."""
        if self.name == "standard":
            return standard(Q, K, V)
        if self.name == "ours":
            from flashlib.kernels import forward  # only where there is a GPU: Triton may not be installed

            return forward.attention(Q, K, V, causal=self.causal, B_r=self.B_r, B_c=self.B_c).O
        with sdpa_kernel(BACKENDS[self.name]):
            return scaled_dot_product_attention(Q, K, V, is_causal=self.causal)

    def closed_form(self) -> Traffic | None:
        """Return the bytes that all heads move according to `cost`, or None where it has no formula."""
        if self.name == "standard":
            head = cost.standard_traffic(self.N, self.N, self.d, dtype=DTYPE)
        elif self.name == "ours":
            N, d = self.N, self.d
            head = cost.fa2_traffic(N, N, d, B_r=self.B_r, B_c=self.B_c, causal=self.causal, dtype=DTYPE)
        else:
            return None
        return Traffic(HEADS * head.read, HEADS * head.written)


SIZES = [(1024, 64), (2048, 64), (4096, 64), (8192, 64), (4096, 128)]
BLOCKS = [(32, 64), (64, 64), (128, 64), (128, 128)]
CALLS = [
    *(CountedCall(name, N, d) for (N, d), name in itertools.product(SIZES, ("standard", *BACKENDS))),
    *(CountedCall("ours", N, d, False, *blocks) for (N, d), blocks in itertools.product(SIZES, BLOCKS)),
    *(CountedCall("ours", 4096, 64, True, *blocks) for blocks in BLOCKS),
    CountedCall("sdpa_flash", 4096, 64, True),
]


def standard(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
    """Standard attention in three kernels that touch S and P, as in `naive.attention`; a fourth scales Q."""
    S = (Q * (1 / math.sqrt(Q.shape[-1]))) @ K.mT
    P = S.softmax(dim=-1)
    return P @ V


def run_under_profiler() -> None:
    """Verify each call, which also warms it up, and run it once more between marks; ncu watches this process."""
    torch.manual_seed(0)
    for call in CALLS:
        size = Size(1, HEADS, HEADS, call.N, call.d, call.causal)
        problem = BenchProblem(size, dtype=getattr(torch, DTYPE))
        problem.verify(call.label, call.run(*problem.tensors))
        torch.cuda.synchronize()
        torch.cuda.nvtx.range_push(call.label)
        torch.cuda.profiler.start()
        call.run(*problem.tensors)
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()
        torch.cuda.nvtx.range_pop()


def profile(cache_control: str) -> dict[str, list[dict]]:
    """Run all calls under ncu, and return the counters as `parse` does."""
    command = [
        *("ncu", "--csv", "--page", "raw", "--nvtx", "--profile-from-start", "off", "--clock-control", "none"),
        *("--cache-control", cache_control, "--metrics", ",".join(metric for metric, _ in METRICS.values())),
        *(sys.executable, "-m", "flashlib.bench.counters", "--under-profiler"),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"ncu failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return parse(done.stdout)


def parse(text: str) -> dict[str, list[dict]]:
    """Return {label: kernels} from what `ncu --csv --page raw --nvtx` prints; each has name, grid and METRICS."""
    lines = [line for line in text.splitlines() if not line.startswith("==")]
    units, *rows = csv.DictReader(lines)
    labels = {call.label for call in CALLS}
    counted = {}
    for row in rows:
        mark = next(value for name, value in row.items() if name.startswith("thread Domain"))
        label = next(part for part in re.split(r'[:"\s]', mark) if part in labels)
        kernel = {"kernel": row["Kernel Name"], "grid": row["Grid Size"]}
        for name, (metric, size) in METRICS.items():
            kernel[name] = round(float(row[metric].replace(",", "")) * UNITS[units[metric]] * size)
        counted.setdefault(label, []).append(kernel)
    return counted


def total(kernels: list[dict], place: str, ways: Iterable[str] = ("read", "written")) -> int:
    """Return the bytes that recorded kernels moved at one of PLACES."""
    return sum(kernel[f"{place}_{way}"] for kernel in kernels for way in ways)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.bench.counters", description=__doc__)
    parser.add_argument("--out", help="a JSON file to record the run in")
    parser.add_argument("--under-profiler", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("The counters need a CUDA device; torch finds none. Recorded runs are in notebooks/data.")
    if args.under_profiler:
        return run_under_profiler()
    if not shutil.which("ncu"):
        sys.exit("ncu is not on the path: it comes with NVIDIA Nsight Compute and the CUDA toolkit.")

    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    record = {**harness.environment(), "l2_bytes": l2, "dtype": DTYPE, "B": 1, "H": HEADS, "rows": []}
    counted = {name: profile(control) for name, control in CACHES.items()}
    print(f"MB read + written, {HEADS} heads, {DTYPE}, {record['gpu']}: closed form, then cold and warm")
    print(f"{'':36}{'form':>10}" + "".join(f"{f'{place} {name}':>11}" for name in CACHES for place in PLACES))
    for call in CALLS:
        kernels = {name: calls[call.label] for name, calls in counted.items()}
        record["rows"].append(call._asdict() | kernels)
        form = call.closed_form()
        sums = [total(kernels[name], place) for name in CACHES for place in PLACES]
        cells = "".join(f"{n / 1e6:11.1f}" for n in sums)
        print(f"{call.label:36}{f'{form.total / 1e6:.1f}' if form else '-':>10}{cells}")
    if args.out:
        harness.write(args.out, record)


if __name__ == "__main__":
    main()
