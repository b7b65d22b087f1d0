"""What the compiler reports on a kernel: registers, spills and listings. For `worker`."""

import re
import subprocess
import tempfile
from typing import Any

from flashlib.kernels.compiler import listings
from flashlib.private_apis import of_compiler


def nvidia_report(compiled: Any, log: str, disassembled: bool) -> dict:
    """Return fields of a `compiled.Compiled`.

    compiled: Triton's CompiledKernel. log: what ptxas printed. disassembled: whether SASS is wanted.
    """
    return {
        "registers": _number(r"Used (\d+) registers", log),
        "agprs": 0,
        "spilled": _number(r"(\d+) bytes spill stores", log),
        "notes": re.findall(r"Potential Performance Loss: (.*)", log),
        **{kind: listings.readable(kind, compiled.asm[kind]) for kind in ("ttgir", "ptx")},
        "sass": sass(compiled) if disassembled else "",
        "amdgcn": "",
    }


def amd_report(compiled: Any, log: str, disassembled: bool) -> dict:
    """Return the same fields; AMDGCN states the numbers in comments and needs no disassembler."""
    text = compiled.asm["amdgcn"]
    return {
        "registers": _number(r"\.vgpr_count:\s+(\d+)", text),
        "agprs": _number(r"\.agpr_count:\s+(\d+)", text),
        "spilled": 4 * _number(r"\.vgpr_spill_count:\s+(\d+)", text),
        "notes": [],
        **{kind: listings.readable(kind, compiled.asm[kind]) for kind in ("ttgir", "amdgcn")},
        "ptx": "",
        "sass": "",
    }


def _number(pattern, text):
    return int(re.search(pattern, text)[1])


def sass(compiled: Any) -> str:
    """Return the listing of the code that the GPU would run, "" if the disassembler is missing."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        try:  # not asm["sass"]: that ends after 4096 instructions
            command = [of_compiler.nvdisasm(), "-c", file.name]
            text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        except (RuntimeError, OSError, subprocess.CalledProcessError):
            return ""
    return listings.readable("sass", text)


REPORTS = {"NVIDIA": nvidia_report, "AMD": amd_report}
