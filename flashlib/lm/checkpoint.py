"""A model's weights as a file: safetensors in float16, with the model's sizes and notes."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import safetensors
import torch
from safetensors.torch import save_file

from flashlib.lm.model import LM, Config, sdpa

STORED = torch.float16  # a GPU that computes in it has the same weights as a CPU that computes in float32
FORMAT = "flashlib.lm 1"


def save(model: LM, path: str | Path, **about: str | float) -> None:
    """Write a model's weights, rounded to float16, with its sizes and notes.

    about: strings or numbers, such as the loss, stored as text.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    weights = {name: W.detach().to(STORED).cpu().contiguous() for name, W in model.state_dict().items()}
    said = {"format": FORMAT, "config": json.dumps(asdict(model.config))}
    save_file(weights, path, metadata=said | {name: str(value) for name, value in about.items()})


def load(
    path: str | Path, attention: Callable[..., torch.Tensor] = sdpa, device: str | torch.device | None = None
) -> tuple[LM, dict[str, str]]:
    """Return the model in a file, in float32, and its notes: strings by name.

    Raises FileNotFoundError, or ValueError for a file that `save` did not write.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} is not there; python -m flashlib.bench.lm --out {path} trains a model")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            about = dict(file.metadata() or {})
            weights = {name: file.get_tensor(name) for name in file.keys()}
        if about.get("format") != FORMAT:
            raise ValueError(f"its format is {about.get('format')!r}, and {FORMAT!r} is known")
        model = LM(Config(**json.loads(about["config"])), attention)
        model.load_state_dict(weights)
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise ValueError(f"{path} has no model that flashlib.lm.checkpoint.save wrote: {error}") from error
    del about["format"], about["config"]
    return model.to(device).eval(), about
