"""Triton's interpreter, three times as fast, with the same results."""

import numpy as np
import triton.language as tl
from triton.runtime import interpreter


def hasten():
    """Replace what takes most of the interpreter's time and computes nothing that is asked for."""
    interpreter._patch_lang = _once(interpreter._patch_lang)
    interpreter.interpreter_semantic.binary_op_sanitize_overflow_impl = _check_overflow


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


def _check_overflow(lhs, rhs, operation):
    """Raise AssertionError if a sum, difference or product of integers leaves its type, as Triton does.

    Triton writes this check as eight operations of the kernel's language, for each operation on integers.
    """
    kind, name = lhs.type.scalar, operation.__name__
    if kind.int_bitwidth >= 64:
        return
    wide = OPERATIONS[name](lhs.handle.data.astype(np.int64), rhs.handle.data.astype(np.int64))
    inside = (kind.get_int_min_value() <= wide) & (wide <= kind.get_int_max_value())
    assert inside.all(), f"int{kind.int_bitwidth} overflow detected for operation {name}"


OPERATIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
