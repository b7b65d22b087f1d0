"""PyTorch for AMD's GPUs also reports "cuda" and a capability: nothing mistakes such a GPU for one of NVIDIA's."""

from types import SimpleNamespace

import pytest
import torch

from flashlib.bench.common import harness
from flashlib.kernels.hopper import launch as hopper
from flashlib.kernels.launch import cache_layout, tile_sizes, which_gpu
from flashlib.private_apis import of_driver

GPU = torch.device("cuda", 0)
HOPPER, MI300X = (9, 0), (9, 4)
PROPERTIES = {  # as Triton's drivers report them
    HOPPER: {"max_shared_mem": 232_448, "multiprocessor_count": 132, "warpSize": 32},
    MI300X: {"max_shared_mem": 65_536, "multiprocessor_count": 304, "warpSize": 64},
}


@pytest.fixture(params=[HOPPER, MI300X], ids=["of NVIDIA", "of AMD"])
def gpu(request, monkeypatch):
    """Pretend that torch finds a GPU and was built for its maker; return the capability that torch reports."""
    monkeypatch.setattr(torch.version, "hip", "7.0.2" if request.param == MI300X else None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: request.param)
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda: SimpleNamespace(gcnArchName="gfx942:sramecc+")
    )
    monkeypatch.setattr(of_driver, "device_properties", lambda index: PROPERTIES[request.param])
    return request.param


def test_only_a_gpu_of_nvidia_has_a_capability_and_tma_and_fp8(gpu):
    of_nvidia = gpu == HOPPER
    assert which_gpu.capability(GPU) == (HOPPER if of_nvidia else (0, 0))
    room = tile_sizes._room.__wrapped__(GPU)
    assert room.tensor_cores and room.tma is of_nvidia
    assert room[:2] == tuple(PROPERTIES[gpu].values())[:2] and room.lanes == (32 if of_nvidia else 64)
    assert cache_layout._has_fp8(GPU) is of_nvidia
    assert harness.capability() == (90 if of_nvidia else "gfx942")


def test_the_kernel_for_hopper_refuses_a_gpu_of_amd(gpu, monkeypatch):
    monkeypatch.setattr(which_gpu, "INTERPRETED", False)
    monkeypatch.setattr(hopper, "check_attention", lambda *_, **__: None)
    X = torch.zeros(1, 1, 64, 64, dtype=torch.bfloat16)
    if gpu == HOPPER:
        hopper.check(X, X, X, False, None)
    else:
        with pytest.raises(ValueError, match="a maker other than NVIDIA, not Hopper's .*: call flashlib.kernels"):
            hopper.check(X, X, X, False, None)


@pytest.mark.parametrize("capability, tensor_cores, tma", [((7, 5), False, False), ((8, 0), True, False)])
def test_older_gpus_of_nvidia_have_less(capability, tensor_cores, tma):
    room = tile_sizes.Room.of(65_536, 40, 32, capability)
    assert (room.tensor_cores, room.tma) == (tensor_cores, tma)


def test_wavefronts_of_64_are_half_as_many_but_not_below_four():
    of_nvidia, of_amd = (tile_sizes.Room(65_536, 40, lanes=lanes) for lanes in (32, 64))
    counts = 1, 2, 4, 8, 16
    assert [of_nvidia.warps(n) for n in counts] == list(counts)
    assert [of_amd.warps(n) for n in counts] == [1, 2, 4, 4, 8]


def test_tiles_of_amd_have_the_requested_wavefronts(monkeypatch):
    monkeypatch.setattr(tile_sizes, "room", lambda device: tile_sizes.Room(163 * 1024, 8, lanes=64))
    bf16, size = torch.bfloat16, dict(causal=False, N_q=4096, N_k=4096, heads=64)
    assert tile_sizes.default(128, bf16, False, GPU, **size).num_warps == 4
    assert tile_sizes.default(128, bf16, False, GPU, **size, num_warps=8).num_warps == 8
    assert {config.num_warps for config in tile_sizes.backward(128, bf16, False, GPU)} == {4}
    assert {config.num_warps for config in tile_sizes.backward(128, bf16, False, GPU, num_warps=2)} == {2}
