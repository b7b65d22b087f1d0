"""FlashAttention on Hopper, in Gluon: kernels that say which warp does what.

forward       the forward pass: the kernel and `attention`
launch        which tensors it takes, and its tiles, grid and descriptors
ladder        numbered, frozen teaching versions, one idea more in each
instrumented  the same kernels with marks, which write when what happened
interpreter   a kernel's own code on a CPU: run, under random schedules; gluon, a stub of Gluon; threads, its roles
"""
