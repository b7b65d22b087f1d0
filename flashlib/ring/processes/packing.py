"""Values that ranks return, packed as bytes without pickle, so that bytes from another host are never code."""

import json
import sys
from typing import Any

import numpy as np

from flashlib import types

NAMED = {cls.__name__: cls for cls in (types.Attention, types.Grads, types.Step, types.BackwardStep)}
ACCEPTED = "None, numbers, text, tensors, arrays, and lists, tuples, dicts, Attention and Grads of them"
HEAD = 8  # bytes that hold the length of the JSON; the numbers of tensors and arrays follow it


def pack(value: object) -> bytes:
    """Return a value as bytes; raise TypeError for anything but what is ACCEPTED. Tensors lose their gradient."""
    parts: list[bytes] = []
    text = json.dumps(_plain(value, parts)).encode()
    return b"".join([len(text).to_bytes(HEAD, "little"), text, *parts])


def unpack(packed: bytes) -> Any:
    """Return the value that was packed; its tensors are on the CPU."""
    end = HEAD + int.from_bytes(packed[:HEAD], "little")
    return _Unpacker(packed, end).value(json.loads(packed[HEAD:end]))


def _plain(value, parts):
    """Return a value that JSON can hold; the numbers of tensors and arrays are appended to `parts`."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return _array(np.asarray(value), "array" if isinstance(value, np.ndarray) else "scalar", parts)
    if (torch := sys.modules.get("torch")) and isinstance(value, torch.Tensor):
        return _tensor(value, parts)
    if isinstance(value, dict):
        return ["dict", [[_plain(key, parts), _plain(of, parts)] for key, of in value.items()]]
    if type(value).__name__ in NAMED and type(value) is NAMED[type(value).__name__]:
        return [type(value).__name__, [_plain(of, parts) for of in value]]
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        kind = "list" if isinstance(value, list) else "tuple"
        return [kind, [_plain(of, parts) for of in value]]
    raise TypeError(f"a rank returned {type(value).__name__}, which is not sent; accepted are {ACCEPTED}")


def _array(value, kind, parts):
    if value.dtype.hasobject or value.dtype.names:
        raise TypeError(f"a rank returned an array of {value.dtype}, which is not sent; return numbers")
    parts.append(value.tobytes())
    return [kind, value.dtype.str, list(value.shape), len(parts[-1])]


def _tensor(value, parts):
    import torch

    if value.layout != torch.strided or value.is_quantized:
        raise TypeError(
            f"a rank returned a tensor of layout {value.layout}, which is not sent; return a dense one"
        )
    whole = value.detach().resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
    parts.append(whole.view(torch.uint8).numpy().tobytes() if len(whole) else b"")
    return ["tensor", str(value.dtype).removeprefix("torch."), list(value.shape), len(parts[-1])]


class _Unpacker:
    """Makes values of what JSON held; the numbers of tensors and arrays are in `packed`, starting at `at`."""

    def __init__(self, packed, at):
        self.packed, self.at = packed, at

    def value(self, plain: Any) -> Any:
        if not isinstance(plain, list):
            return plain
        kind, *rest = plain
        if kind == "dict":
            return {self.value(key): self.value(of) for key, of in rest[0]}
        if kind in ("list", "tuple", *NAMED):
            values = [self.value(of) for of in rest[0]]
            return NAMED[kind](*values) if kind in NAMED else tuple(values) if kind == "tuple" else values
        dtype, shape, size = rest
        part = bytearray(self.packed[self.at : self.at + size])
        self.at += size
        if kind == "tensor":
            return self.tensor(part, dtype, shape)
        array = np.frombuffer(part, np.dtype(dtype)).reshape(shape)
        return array if kind == "array" else array[()]

    @staticmethod
    def tensor(part, dtype, shape):
        import torch

        dtype = getattr(torch, dtype)
        if not part:
            return torch.empty(shape, dtype=dtype)
        return torch.frombuffer(part, dtype=torch.uint8).view(dtype).reshape(shape)
