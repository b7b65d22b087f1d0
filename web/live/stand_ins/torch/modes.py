"""Modes, which see each call of a function of torch while they are active."""

import functools

from .errors import as_torch

_active = []


class TorchFunctionMode:
    """What a class derives from to see the calls in a `with`; its own calls it does not see."""

    def __enter__(self):
        _active.append(self)
        return self

    def __exit__(self, *error):
        _active.pop()

    def __torch_function__(self, function, types, arguments=(), options=None):  # noqa: ARG002
        return function(*arguments, **(options or {}))


def seen(function):
    """Return a function that tells the active mode of its calls, and raises errors in torch's words."""

    @functools.wraps(function)
    def call(*arguments, **options):
        if not _active:
            try:
                return function(*arguments, **options)
            except (ValueError, IndexError) as error:
                raise as_torch(error) from None
        mode = _active.pop()
        try:
            return mode.__torch_function__(call, (), arguments, options)
        finally:
            _active.append(mode)

    return call
