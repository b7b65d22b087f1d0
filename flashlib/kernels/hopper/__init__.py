"""FlashAttention on Hopper, in Gluon: kernels that say which warp does what.

forward   the forward pass: the kernel and `attention`
launch    which tensors it takes, and its tiles, grid and descriptors
"""
