"""FlashAttention on Hopper, in Gluon: kernels that say which warp does what.

forward       the forward pass: the kernel and `attention`
launch        which tensors it takes, and its tiles, grid and descriptors
ladder        numbered, frozen teaching versions, one idea more in each
interpreting  a kernel's own code on a CPU, under random schedules; standing: what stands for Gluon there;
              threads: its roles
"""
