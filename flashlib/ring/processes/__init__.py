"""Run a function on several processes, the ranks of a torch.distributed group.

`run` starts the processes, from a notebook too: the function may come from a cell. Under torchrun, this process
joins the ranks that torchrun has started. docs/ranks.md says what works on which system.
"""

from flashlib.ring.processes.failure_report import RankError, RanksWait
from flashlib.ring.processes.running import run

__all__ = ["RankError", "RanksWait", "run"]
