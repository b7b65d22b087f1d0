"""Note what the kernels of a recorded row were compiled to; `tests/bench` compares this with today's kernels.

A row has "kernels", which lists what `kernels.compiler.compiled` reported about each of our timed kernels:

    kernel, d, causal, shape  which one, and (B, H_q, H_k, N)
    asked                     the options that the call was given; the kernel chose the others
    config                    [B_r, B_c, num_warps, num_stages] of the launch
    sass, ttgir               hashes of the code that ran, and of the TTGIR that it was made from. Names and
                              comments do not change them. In one version of Triton equal TTGIR becomes equal SASS,
                              and it takes much less time to make.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from flashlib.bench.common import harness

if TYPE_CHECKING:
    from flashlib.kernels.compiler.compiled import CompiledLaunch

CAPABILITY = 90  # of the GPU of the records


class Notes:
    """Adds "kernels" to rows while the GPU keeps working: the compiler is a separate process without a GPU.

    capability: of the GPU that is timed.
    """

    def __init__(self, capability: int | str = CAPABILITY) -> None:
        import flashlib.kernels.compiler.compiled  # noqa: F401  # not first in a thread, during imports here

        self.capability, self.pool, self.waiting = capability, ThreadPoolExecutor(1), []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.pool.shutdown(wait=False, cancel_futures=True)

    def add(self, row: dict, size: dict, asked: dict[str, dict]) -> None:
        """Record in a row what the kernels in `asked`, {kernel: options}, are compiled to.

        size: d, causal and shape, as `compiled.launch` takes them.
        """
        row["kernels"] = []
        for kernel, options in asked.items():
            entry = {"kernel": kernel, **size, "asked": options}
            row["kernels"].append(entry)
            self.waiting.append((entry, self.pool.submit(launched, entry, self.capability)))

    def finish(self) -> None:
        """Wait for all entries; an entry gets the reason if the compiler fails."""
        for entry, future in self.waiting:
            try:
                entry |= future.result()
            except Exception as error:  # the times are still right
                entry["reason"] = harness.reason(error)
                harness.say(f"{entry['kernel']} is not known as compiled: {entry['reason']}")
        self.waiting.clear()


def launched(entry: dict, capability: int | str = CAPABILITY) -> dict:
    """Return config, ttgir and sass of the call that an entry describes."""
    config = launch(entry, "config", capability).config
    found = launch(representative(entry | {"config": config}), "sass", capability)
    if not found.sass:
        raise RuntimeError("Triton's disassembler, nvdisasm, is missing")
    return found._asdict()


def launch(entry: dict, until: str, capability: int | str = CAPABILITY) -> "CompiledLaunch":
    """Return what the call that an entry describes is compiled to; until: as for `compiled.launch`."""
    from flashlib.kernels.compiler import compiled  # not before it is needed: Triton may not be installed

    size = {name: entry[name] for name in ("kernel", "d", "causal", "shape")}
    return compiled.launch(**size, **entry["asked"], capability=capability, until=until)


def representative(entry: dict) -> dict:
    """Return a representative of all calls that run the same code: Triton knows only what N is a multiple of.

    Up to 4096 keys the choices of Hopper's kernels depend on N, in its backward pass up to 8192.
    """
    from flashlib.kernels.compiler import registry

    _, H_q, H_k, N = entry["shape"]
    config = dict(zip(("B_r", "B_c", "num_warps", "num_stages"), entry["config"], strict=True))
    taken = registry.options_of(entry["kernel"])  # the Hopper kernel chooses by itself
    config = {name: value for name, value in config.items() if name in taken}
    longest = 16384 if entry["kernel"] == "hopper_backward" else 4096
    asked = {"shape": [1, H_q, H_k, N if N % 1024 else min(N, longest)], "asked": config | entry["asked"]}
    return {name: entry[name] for name in ("kernel", "d", "causal")} | asked


def has_notes(row: dict) -> bool:
    """Return whether a ladder's row records what was compiled: the best of each rung with tiles, at d = 128."""
    stored = row["rung"] in ("r1_eager", "r2_softmax", "b1_eager")
    return row["part"] in ("ladder", "wait") and row["best"] and row["d"] == 128 and not stored
