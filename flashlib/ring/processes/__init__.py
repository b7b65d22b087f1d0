"""A function on several processes, the ranks of a group of torch.distributed.

`run` starts them, from a notebook too: the function may be one of a cell. Under torchrun it joins those that are
there. docs/ranks.md says what runs on which system.
"""

from flashlib.ring.processes.running import run
from flashlib.ring.processes.told import RankError, RanksWait

__all__ = ["RankError", "RanksWait", "run"]
