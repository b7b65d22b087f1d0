"""Run kernels in Gluon on a CPU, which Triton's interpreter cannot do: the course's, and a learner's.

    with gluon.on_cpu(seed=3) as ran:
        O, lse = hopper.forward.attention(Q, K, V)

run            takes over launches: `on_cpu`, as on a Hopper GPU; `taken`, for a check
world          the functions of a kernel as plain Python, over stubs of the parts of Gluon
language       those stubs; memory: shared memory, barriers, the copy unit; pointer: global memory
tensor_cores   products; assembly: PTX
tile           a tile in registers, with its layout; integers: numbers that divide as on the GPU
threads        roles as threads, of which one runs at a time; an order picks the next
names          what a kernel calls the memory that it allocates; refused: what the compiler would not take
"""

import flashlib.private_apis  # noqa: F401  before Triton: it says whether kernels are interpreted
from flashlib.gluon.refused import Wrong
from flashlib.gluon.run import Ran, on_cpu, taken

__all__ = ["Ran", "Wrong", "on_cpu", "taken"]
