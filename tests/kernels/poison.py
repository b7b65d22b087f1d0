"""Memory in which elements that were not written are noticed."""

import torch


def poison(monkeypatch):
    """Fill memory that torch allocates without values with NaN, or with the largest number of an integer dtype."""
    of_torch, of_tensors = ("empty", "empty_like"), ("new_empty", "new_empty_strided")
    for owner, name in (*((torch, name) for name in of_torch), *((torch.Tensor, name) for name in of_tensors)):
        allocate = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *a, _allocate=allocate, **k: _filled(_allocate(*a, **k)))


def _filled(X):
    if X.is_floating_point() or X.is_complex():
        return X.fill_(torch.nan)
    return X.fill_(True if X.dtype == torch.bool else torch.iinfo(X.dtype).max)
