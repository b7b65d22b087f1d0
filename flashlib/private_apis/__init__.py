"""All private parts of Triton and torch that flashlib uses, which any new version may change.

of_torch            torch
of_driver           launches of Triton; of_compiler: reports on compiled kernels
of_interpreter      Triton's interpreter; of_watching: how its kernels are watched; of_loops: turns of their loops
of_kernels          what counts as a kernel of Triton or Gluon
of_gluon            Gluon: an instruction that it lacks, launches that are taken over
gpu_stand_in        a stand-in for a Hopper GPU while they are
tried               the list, the versions that it was tried with, and what to do for a new one

Triton decides when it is first imported whether kernels are interpreted. So the variable that requests this on
machines without a GPU is set here, and modules that import Triton before `flashlib.kernels` import this package
first.
"""

import os

import torch

if not torch.cuda.is_available() and not os.environ.get("TRITON_INTERPRET"):
    os.environ["TRITON_INTERPRET"] = "1"
