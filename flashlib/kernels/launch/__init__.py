"""How kernels are launched: their inputs checked, plans made once, tiles chosen."""
