"""Attention in e4m3 by cuDNN, through its frontend for Python: `pip install nvidia-cudnn-frontend==1.18.0`."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

E4M3, LARGEST = torch.float8_e4m3fn, 448.0


class CudnnCall(NamedTuple):
    """run() computes O and returns it in e4m3. unit: the factor by which O must be multiplied."""

    run: Callable[[], torch.Tensor]
    unit: float


def prepared(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool, largest: float) -> CudnnCall:
    """Return cuDNN's attention on these tensors, each in e4m3 with one scale; it returns O in e4m3 only.

    largest: the largest value of O, for its scale. Raises ImportError without the frontend, and whatever the
    frontend raises.
    """
    import cudnn

    handle, kind = _handle(), cudnn.data_type
    tops = [X.abs().max().item() for X in (Q, K, V)]
    given = [(X.float() * (LARGEST / top)).to(E4M3) for X, top in zip((Q, K, V), tops, strict=True)]
    numbers = dict(zip(("descale_q", "descale_k", "descale_v"), (top / LARGEST for top in tops), strict=True))
    numbers |= {"descale_s": 1 / LARGEST, "scale_s": LARGEST, "scale_o": LARGEST / largest}
    graph = cudnn.pygraph(
        io_data_type=kind.FP8_E4M3, intermediate_data_type=kind.FLOAT, compute_data_type=kind.FLOAT, handle=handle
    )
    q, k, v = (graph.tensor(dim=list(X.shape), stride=list(X.stride()), data_type=kind.FP8_E4M3) for X in given)
    one = {"dim": [1] * 4, "stride": [1] * 4}
    scales = {name: graph.tensor(**one, data_type=kind.FLOAT) for name in numbers}
    o, _, *largest_found = graph.sdpa_fp8(
        q=q, k=k, v=v, **scales, attn_scale=1 / math.sqrt(Q.shape[-1]), use_causal_mask=causal,
        generate_stats=False, name="sdpa",
    )  # fmt: skip
    O = torch.empty(Q.shape, dtype=E4M3, device=Q.device)
    o.set_output(True).set_dim(list(O.shape)).set_stride(list(O.stride())).set_data_type(kind.FP8_E4M3)
    for tensor in largest_found:
        tensor.set_output(True).set_dim(one["dim"]).set_stride(one["stride"]).set_data_type(kind.FLOAT)
    _build(cudnn, graph)
    pack: dict[Any, torch.Tensor] = dict(zip((q, k, v), given, strict=True)) | {o: O}
    pack |= {scales[name]: torch.full((1,) * 4, x, device=Q.device) for name, x in numbers.items()}
    pack |= {tensor: torch.zeros((1,) * 4, device=Q.device) for tensor in largest_found}
    workspace = torch.empty(max(1, graph.get_workspace_size()), device=Q.device, dtype=torch.uint8)

    def run():
        cudnn.set_stream(handle=handle, stream=torch.cuda.current_stream().cuda_stream)
        graph.execute(pack, workspace, handle=handle)
        return O

    return CudnnCall(run, largest / LARGEST)


@functools.cache
def _handle():
    import cudnn

    return cudnn.create_handle()


def _build(cudnn, graph):
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    graph.check_support()
    graph.build_plans()
