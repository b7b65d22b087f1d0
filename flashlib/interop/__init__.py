"""Our attention where others call it: adapters, a module for each package, and no algorithm.

    flash_attn      the functions of the package flash_attn (FlashAttention 2), and a module that stands in for it

Each takes the package's own arguments and layouts. What it does not honour it refuses in words, before any work.
"""
