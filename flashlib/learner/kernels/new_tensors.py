"""New tensors of a learner's function: uninitialised ones are filled with nan."""

import torch
from torch.overrides import TorchFunctionMode

UNFILLED = torch.empty, torch.empty_like, torch.Tensor.new_empty, torch.empty_strided


class NewTensors(TorchFunctionMode):  # TorchDispatchMode takes two seconds to import
    """Notes the shapes of new tensors while it is active, and fills uninitialised ones with nan."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes = set()

    def __torch_function__(self, function, types, arguments=(), options=None):
        made = function(*arguments, **(options or {}))
        if isinstance(made, torch.Tensor):
            self.shapes.add(tuple(made.shape))
            if function in UNFILLED and made.is_floating_point():
                made.fill_(torch.nan)
        return made
