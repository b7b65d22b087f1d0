"""Enums of Triton's intermediate representation. Its classes, which only annotations name, are empty."""

import enum

ATOMIC_OP = enum.Enum("ATOMIC_OP", "ADD FADD AND OR XOR XCHG MAX MIN UMIN UMAX")
CACHE_MODIFIER = enum.Enum("CACHE_MODIFIER", "NONE CA CG WB CS WT CV")
DESCRIPTOR_REDUCE_KIND = enum.Enum("DESCRIPTOR_REDUCE_KIND", "ADD AND OR XOR MAX MIN INC DEC")
EVICTION_POLICY = enum.Enum("EVICTION_POLICY", "NORMAL EVICT_FIRST EVICT_LAST")
INPUT_PRECISION = enum.Enum("INPUT_PRECISION", "TF32 TF32x3 IEEE BF16x3 BF16x6")
MEM_SEMANTIC = enum.Enum("MEM_SEMANTIC", "ACQUIRE_RELEASE ACQUIRE RELEASE RELAXED")
MEM_SYNC_SCOPE = enum.Enum("MEM_SYNC_SCOPE", "GPU CTA SYSTEM")
PADDING_OPTION = enum.Enum("PADDING_OPTION", "PAD_ZERO PAD_NAN")
PROPAGATE_NAN = enum.Enum("PROPAGATE_NAN", "NONE ALL")
ROUNDING_MODE = enum.Enum("ROUNDING_MODE", "RTZ RTNE")
ScaleDotElemTypeTY = enum.Enum("ScaleDotElemTypeTY", "E4M3 E5M2 E2M3 E3M2 E2M1 BF16 FP16")


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    return type(name, (), {})
