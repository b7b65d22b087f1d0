"""The versions of transformers that were tried."""

import importlib.metadata
import warnings

TRIED = ("5.24.0",)


def warn() -> None:
    """Warn, in one sentence, if this version of transformers was not tried."""
    try:
        version = importlib.metadata.version("transformers")
    except importlib.metadata.PackageNotFoundError:
        raise ImportError("transformers is not installed: run make models") from None
    if version not in TRIED:
        warnings.warn(
            f"flashlib's attention was tried with transformers {', '.join(TRIED)}, and this is {version}: compare "
            "a model's logits with those of eager once",
            stacklevel=3,
        )
