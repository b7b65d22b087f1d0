"""What the compiler says of a kernel: registers, spills, and its listings. For `worker`."""

import re
import subprocess
import tempfile
from typing import Any

from flashlib.kernels.compiler import listings
from flashlib.private_apis import of_compiler


def of_nvidia(compiled: Any, log: str, disassembled: bool) -> dict:
    """Return fields of a `compiled.Compiled`.

    compiled: Triton's CompiledKernel; log: what ptxas printed; disassembled: whether SASS is wanted.
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


def of_amd(compiled: Any, log: str, disassembled: bool) -> dict:
    """Return the same; AMDGCN has the numbers as comments, and needs no disassembler."""
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
    """Return the listing of the code the GPU would run, "" where the disassembler is missing."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        try:  # not asm["sass"]: that ends after 4096 instructions
            command = [of_compiler.nvdisasm(), "-c", file.name]
            text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        except (RuntimeError, OSError, subprocess.CalledProcessError):
            return ""
    return listings.readable("sass", text)


OF = {"NVIDIA": of_nvidia, "AMD": of_amd}
