"""A stand-in for triton._C.libtriton, the part of Triton that is written in C++: what its interpreter asks of it.

The environment and the types of arguments are here; `ir` has the enums, `interpreter` loads and stores. There is
no compiler.
"""

import os

from . import interpreter, ir, linear_layout

__all__ = [
    "get_cache_invalidating_env_vars", "getenv", "getenv_bool", "interpreter", "ir", "linear_layout",
    "native_specialize_impl",
]  # fmt: skip

ON = "1", "true", "on", "yes", "y"
NAMES = {  # dtype of a tensor: its name in Triton
    "bool": "u1", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "int8": "i8", "int16": "i16",
    "int32": "i32", "int64": "i64", "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64",
    "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5",
}  # fmt: skip


def getenv(name, default=None):
    return os.environ.get(name, default)


def getenv_bool(name, default):
    value = os.environ.get(name)
    return default if value is None else value.lower() in ON


def get_cache_invalidating_env_vars():
    """Return {}: nothing is compiled, so nothing is cached."""
    return {}


def native_specialize_impl(backend, argument, is_const, specialize, align):
    """Return (the name of an argument's type, None): where nothing is compiled, nothing is specialised."""
    return _type_name(argument), None


def _type_name(argument):
    match argument:
        case None:
            return "constexpr"
        case bool():
            return "u1"
        case int():
            return _integer(argument)
        case float():
            return "fp32"
    if hasattr(argument, "data_ptr"):
        return "*" + NAMES[str(argument.dtype).removeprefix("torch.")]
    raise TypeError(f"failed to specialize argument of type: {type(argument).__name__}")


def _integer(n):
    if n >= 2**64 or n < -(2**63):
        raise OverflowError("integer to be specialized too large to represent")
    return "i32" if -(2**31) <= n < 2**31 else "i64" if n < 2**63 else "u64"
