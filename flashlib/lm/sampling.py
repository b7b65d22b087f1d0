"""Choose the next token: the likeliest one, or a random one."""

from functools import lru_cache

import numpy as np

from flashlib.types import Array


def choose(logits: Array, temperature: float, seed: int, place: int) -> int:
    """Return the next token: the likeliest at temperature 0, else one drawn from softmax(logits / temperature).

    logits: (vocab,), a tensor or an array. place: the number of tokens before it. The random number depends only
    on seed and place, so a text that is interrupted anywhere continues as it would have. Logits that differ by
    rounding give a different token only if that number is within rounding of the boundary between two tokens.
    """
    s = fp64(logits)
    if not np.isfinite(s).all():
        raise ValueError("logits hold NaN or infinity, so no token can be chosen; look at the weights")
    if temperature == 0:
        return int(s.argmax())
    with np.errstate(over="ignore"):  # to -inf at a temperature near 0
        sums = np.exp((s - s.max()) / temperature).cumsum()
    return int(sums.searchsorted(drawn(seed, place) * sums[-1], side="right"))


def fp64(logits: Array) -> np.ndarray:
    """Return logits as an fp64 array. From a GPU they are copied, which waits for it."""
    return logits.astype(float, copy=False) if isinstance(logits, np.ndarray) else logits.double().cpu().numpy()


@lru_cache(4096)  # making a generator takes longer than all of the above
def drawn(seed: int, place: int) -> float:
    """Return a random number from 0 to 1, always the same for a seed and a place."""
    return np.random.default_rng((seed, place)).random()


def check_temperature(temperature: float) -> None:
    """Raise TypeError or ValueError unless it is a finite number of at least 0."""
    if isinstance(temperature, bool) or not isinstance(temperature, int | float):
        raise TypeError(f"temperature is {temperature!r}; pass a number, 0 for the likeliest token")
    if not 0 <= temperature < float("inf"):
        raise ValueError(f"temperature is {temperature}; pass at least 0, 0 for the likeliest token")
