"""Tensors that a learner's function makes: what nothing fills is nan."""

import torch
from torch.overrides import TorchFunctionMode

UNFILLED = torch.empty, torch.empty_like, torch.Tensor.new_empty, torch.empty_strided


class Made(TorchFunctionMode):  # the other kind of mode imports two seconds' worth of modules
    """Notes the shapes of new tensors while it is active, and fills those with nan that nothing else fills."""

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
