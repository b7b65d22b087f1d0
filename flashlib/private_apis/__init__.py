"""The private parts of Triton and torch that flashlib uses, which any new version may change: all are here.

of_torch            torch
of_driver           launches of Triton; of_compiler: reports on compiled kernels
of_interpreter      Triton's interpreter; of_watching: what is seen of a kernel there; of_loops: its loops
of_kernels          what is a kernel, of Triton or Gluon
of_gluon            Gluon: an instruction that it lacks, launches that are taken over
tried               the list, with which versions they were tried, and what to do on a new one

Triton decides when it is first imported whether kernels are interpreted. So the variable that asks for it where
there is no GPU is set here, and what imports Triton before `flashlib.kernels` imports this room first.
"""

import os

import torch

if not torch.cuda.is_available() and not os.environ.get("TRITON_INTERPRET"):
    os.environ["TRITON_INTERPRET"] = "1"
