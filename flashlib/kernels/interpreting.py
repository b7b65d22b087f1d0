"""Triton's interpreter made faster, with the same results to the bit."""

import dataclasses

import triton.language as tl
from triton.runtime import interpreter


def hasten():
    """Replace what takes most of the interpreter's time and computes nothing that is asked for."""
    interpreter._patch_lang = _once(interpreter._patch_lang)
    builder = interpreter.interpreter_builder
    # Whether a sum of integers leaves its type: eight operations on each, and what comes of them is not looked at.
    builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)


def _once(prepare):
    """Return what prepares `triton.language` for the interpreter once a launch.

    Triton does so at each call of a kernel's part again. Parts are the functions that a kernel calls, `tl.max`
    and `tl.exp2` among them, and it takes two milliseconds to look through the language for what is prepared.
    """
    prepared = set()

    def once(fn):
        languages = {id(value) for value in fn.__globals__.values() if value is tl or value is tl.core}
        if languages and languages <= prepared:
            return interpreter._LangPatchScope()  # nothing to restore
        scope = prepare(fn)
        restore = scope.restore

        def restored():
            prepared.clear()
            restore()

        scope.restore = restored  # called at the end of a launch alone
        prepared.update(languages)
        return scope

    return once
