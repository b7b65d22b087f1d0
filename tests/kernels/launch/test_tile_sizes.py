"""The tuned table fits every GPU, and tiles that do not fit are made smaller, but no smaller than necessary."""

import math
from functools import partial

import numpy as np
import pytest
import torch

from flashlib import masks
from flashlib.kernels.launch import tile_sizes
from flashlib.kernels.launch.tile_sizes import Config
from flashlib.kernels.masking.sparsity import sparsity_of
from tests.kernels import drawn

KB = 1024
TABLES = {
    "hopper": (tile_sizes.HOPPER, 227 * KB),
    "ampere": (tile_sizes.AMPERE, 163 * KB),
    "no tensor cores": (tile_sizes.NO_TENSOR_CORES, 99 * KB),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("D", [32, 64, 128, 256])
def test_the_table_fits_the_gpus_it_was_made_for(name, D):
    table, room = TABLES[name]
    for config in table[D]:
        shared = partial(tile_sizes.shared_bytes, D=D, itemsize=4 if name == "no tensor cores" else 2)
        assert tile_sizes.fitted(config, shared, room) == config


def test_the_shared_memory_of_a_program_is_that_of_its_tiles():
    config, d = Config(16, 64, 4, 3), 32
    q, k, row, bits = (16, d, 2), (64, d, 2), (16, 4), (16, 64 // 8)  # in 16 bits; lse and delta in fp32
    passes = {
        tile_sizes.shared_bytes: [q, *[k, k] * 3],
        partial(tile_sizes.shared_bytes, bits=True): [q, *[k, k] * 3, bits, bits],
        tile_sizes.shared_bytes_dkv: [k, k, *[q, q, row, row] * 3],
        partial(tile_sizes.shared_bytes_dkv, with_dq=True): [k, k, *[q, q, row, row] * 3, (16, 64, 2), (16, d, 4)],
        tile_sizes.shared_bytes_dq: [q, q, *[k, k] * 3],
    }
    for shared, tiles in passes.items():
        assert shared(config, d, 2) == sum(map(math.prod, tiles)) + tile_sizes.BARRIERS


@pytest.mark.parametrize("room", [64 * KB, 99 * KB, 163 * KB])
@pytest.mark.parametrize("D", [16, 64, 128, 256])
@pytest.mark.parametrize("itemsize", [2, 4])
def test_a_fitted_config_fits_and_keeps_what_it_can(room, D, itemsize):
    config = Config(128, 128, 8, 4)
    fitted = tile_sizes.fitted(config, partial(tile_sizes.shared_bytes, D=D, itemsize=itemsize), room)
    assert tile_sizes.shared_bytes(fitted, D, itemsize) <= room
    assert fitted.num_warps == config.num_warps and min(fitted.B_R, fitted.B_C) >= 16
    if fitted.num_stages < config.num_stages:
        one_more = fitted._replace(num_stages=fitted.num_stages + 1)
        assert tile_sizes.shared_bytes(one_more, D, itemsize) > room
    else:
        assert fitted == config


def default(D, dtype, descriptors, *, causal=False, N_q=4096, N_k=4096, heads=64, **keys):
    sizes = {"causal": causal, "N_q": N_q, "N_k": N_k, "heads": heads, **keys}
    return tile_sizes.default(D, dtype, descriptors, torch.device("cpu"), **sizes)


def test_the_default_is_that_of_the_table():
    assert default(128, torch.float16, False) == tile_sizes.AMPERE[128][0]
    assert default(128, torch.float32, True) == tile_sizes.NO_TENSOR_CORES[128][0]
    assert default(16, torch.bfloat16, True) == tile_sizes.HOPPER[32][0]


def test_the_default_is_fitted_to_the_device(monkeypatch):
    monkeypatch.setattr(tile_sizes, "room", lambda device: tile_sizes.Room(99 * KB, 40))  # an RTX 4090 has as much
    small = default(128, torch.float16, False)
    assert (
        tile_sizes.shared_bytes(small, 128, 2)
        <= 99 * KB
        < tile_sizes.shared_bytes(tile_sizes.AMPERE[128][0], 128, 2)
    )


def test_a_gpu_without_tensor_cores_takes_small_tiles(monkeypatch):
    monkeypatch.setattr(
        tile_sizes, "room", lambda device: tile_sizes.Room(64 * KB, 40, tensor_cores=False)
    )  # a T4
    assert default(128, torch.float16, False) == tile_sizes.NO_TENSOR_CORES[128][0]


def test_short_sequences_have_separate_tiles(monkeypatch):
    monkeypatch.setattr(tile_sizes, "room", lambda device: tile_sizes.Room(227 * KB, 132))
    rule, short = tile_sizes.HOPPER[128]
    assert default(128, torch.float16, True, N_q=rule.B_R * 2 - 1, heads=66) == rule
    assert default(128, torch.float16, True, N_q=rule.B_R * 2 - 1, heads=65) == short
    assert default(128, torch.float16, True, causal=True, N_k=tile_sizes.SHORT * rule.B_C) == short
    assert default(128, torch.float16, True, causal=True, N_k=tile_sizes.SHORT * rule.B_C + 1) == rule
    assert default(128, torch.float16, True, causal=False, N_k=tile_sizes.SHORT * rule.B_C) == rule


def test_a_mask_that_leaves_few_keys_has_the_tiles_of_short_sequences():
    rule, short = tile_sizes.HOPPER[128]
    few = tile_sizes.SHORT * rule.B_C
    assert default(128, torch.float16, True, sparsity=tile_sizes.Sparsity(few)) == short
    assert default(128, torch.float16, True, sparsity=tile_sizes.Sparsity(few + 1)) == rule
    assert default(128, torch.float16, True, N_k=few, sparsity=tile_sizes.Sparsity(few)) == rule, (
        "no mask hides any"
    )


def test_tiles_are_not_larger_than_blocks_if_possible():
    (rule, short), wide = tile_sizes.HOPPER[128], (256, 256)
    for sides, expected in [((wide,), rule), ((wide, (64, 64)), short), (((64, 128),), short)]:
        assert default(128, torch.float16, True, sparsity=tile_sizes.Sparsity(sides=sides)) == expected
    for sides, B_C in [((100, 128), 64), ((64, 100), 64), ((64, 48), 32), ((32, 32), 32), ((64, 16), 32)]:
        of_parts = short._replace(B_C=B_C, num_stages=2)
        assert default(128, torch.float16, True, sparsity=tile_sizes.Sparsity(sides=(sides,))) == of_parts


def test_tiles_with_bits_are_small_and_have_two_stages_where_there_is_room(monkeypatch):
    of, small = tile_sizes.Sparsity(bits=True), tile_sizes.Config(64, 64, 4, 2)
    assert default(128, torch.float16, True, sparsity=of) == small
    assert default(128, torch.float16, True, sparsity=of, num_stages=3) == tile_sizes.HOPPER[128][1]
    rule = tile_sizes.HOPPER[128][0]
    assert default(128, torch.float16, True, sparsity=of, **rule._asdict()) == rule, "what is asked for is kept"
    monkeypatch.setattr(
        tile_sizes, "room", lambda device: tile_sizes.Room(tile_sizes.shared_bytes(small, 128, 2), 132)
    )
    assert default(128, torch.float16, True, sparsity=of) == small._replace(num_stages=1)


MASKS = {
    "window": (masks.window(40, 9), 50 - (40 * 41 / 2 + 9 * 10 / 2) / 200),
    "documents": (masks.documents(np.arange(200) // 50), 50),
    "sequences": (masks.documents(np.stack([np.arange(200) // 50, np.arange(200) // 100])), 75),
    "causal documents": (masks.causal() & masks.documents(np.arange(200) // 50), 25.5),
    "soft cap": (masks.softcap(3.0), 200),
    "blocks": (masks.blocks(np.eye(2, dtype=bool), 100, 100), 200),
}


@pytest.mark.parametrize("name", MASKS)
def test_how_many_keys_a_row_sees(name):
    mask, keys = MASKS[name]
    assert min(sparsity_of(mask, False, 200, 200).keys, 200) == pytest.approx(keys)


def test_which_masks_are_kept_as_bits():
    of = masks.from_function(lambda r, c: r != c)
    assert sparsity_of(of & masks.causal(), False, 200, 200) == tile_sizes.Sparsity(bits=True)
    assert sparsity_of(masks.window(3, 0) | masks.prefix(9), False, 200, 200).bits
    blocks = masks.blocks(np.eye(2, dtype=bool), 100, 100) & masks.prefix(7)
    assert sparsity_of(blocks, False, 200, 200) == tile_sizes.Sparsity(sides=((100, 100),))
    assert not sparsity_of(drawn.stripes(), False, 200, 200).bits


def test_chosen_numbers_stay_and_the_others_shrink(monkeypatch):
    monkeypatch.setattr(tile_sizes, "room", lambda device: tile_sizes.Room(163 * KB, 108))  # an A100
    sizes = {"causal": False, "N_q": 4096, "N_k": 4096, "heads": 64}
    cpu = torch.device("cpu")
    config = tile_sizes.default(128, torch.float16, False, cpu, **sizes, B_R=128, B_C=128)
    assert (config.B_R, config.B_C) == (128, 128) and config.num_stages < tile_sizes.AMPERE[128][0].num_stages
    assert tile_sizes.shared_bytes(config, 128, 2) <= 163 * KB
    stages = tile_sizes.default(128, torch.float16, False, cpu, **sizes, num_stages=8)
    assert stages.num_stages == 8 and stages.B_C < tile_sizes.AMPERE[128][0].B_C


BACKWARD_TABLES = {
    "hopper": (tile_sizes.HOPPER_BACKWARD, 227 * KB, torch.bfloat16, True),
    "ampere": (tile_sizes.AMPERE_BACKWARD, 163 * KB, torch.float16, False),
    "no tensor cores": (tile_sizes.NO_TENSOR_CORES_BACKWARD, 99 * KB, torch.float32, False),
}


@pytest.mark.parametrize("name", BACKWARD_TABLES)
@pytest.mark.parametrize("D", [32, 64, 128, 256])
def test_the_backward_table_fits_the_gpus_it_was_made_for(name, D, monkeypatch):
    table, room, dtype, descriptors = BACKWARD_TABLES[name]
    monkeypatch.setattr(tile_sizes, "room", lambda device: tile_sizes.Room(room, 100))
    assert tile_sizes.backward(D, dtype, descriptors, torch.device("cuda")) == table[D]


@pytest.mark.parametrize("D", [16, 64, 256])
def test_backward_passes_are_made_smaller_and_chosen_numbers_stay(D, monkeypatch):
    monkeypatch.setattr(tile_sizes, "room", lambda device: tile_sizes.Room(64 * KB, 40))
    passes = tile_sizes.backward(D, torch.float16, False, torch.device("cuda"))
    shared = (
        tile_sizes.shared_bytes_dkv,
        tile_sizes.shared_bytes_dq,
        partial(tile_sizes.shared_bytes_dkv, with_dq=True),
    )
    for config, of in zip(passes, shared, strict=True):
        assert of(config, D, 2) <= 64 * KB
    asked = tile_sizes.backward(D, torch.float16, False, torch.device("cuda"), B_R=16, num_warps=2)
    assert all((config.B_R, config.num_warps) == (16, 2) for config in asked)
