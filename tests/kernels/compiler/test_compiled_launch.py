"""`compiled.launch` reports what a call of this shape launches on a GPU of this kind, as far as requested."""

import pytest

from flashlib.gpus import GPUS
from flashlib.kernels.compiler import compiled
from flashlib.kernels.launch import tile_sizes

SMALL = {"kernel": "forward", "d": 16, "shape": (1, 2, 2, 48), "B_r": 16, "B_c": 16, "num_warps": 1}


def test_a_launch_is_compiled_as_far_as_requested():
    config, ttgir, sass = (compiled.launch(**SMALL, until=until) for until in ("config", "ttgir", "sass"))
    assert config.config[:3] == [16, 16, 1] and config == (config.config, None, None)
    assert ttgir == (config.config, ttgir.ttgir, None) and len(ttgir.ttgir) == 12
    assert sass == (config.config, ttgir.ttgir, sass.sass) and len(sass.sass) == 12


def test_the_warps_of_a_launch_are_those_requested_whatever_was_compiled_before():
    """With roles the compiled kernel has more."""
    asked = {"kernel": "hopper_r1_alike", "d": 64, "shape": (1, 2, 2, 256)}
    report = compiled.report(**asked)
    launches = [compiled.launch(**asked, until=until) for until in ("config", "ttgir", "sass")]
    assert report.num_warps >= 4 and all(launch.config == launches[0].config for launch in launches)
    more = compiled.report(**asked | {"kernel": "hopper_forward"})
    config = compiled.launch(**asked | {"kernel": "hopper_forward"}, until="config").config
    assert config[2] == 4 < more.num_warps


@pytest.mark.parametrize(
    ("shape", "causal"), [((4, 16, 16, 4096), True), ((16, 16, 16, 1024), True), ((1, 8, 2, 512), False)]
)
def test_a_kernel_chooses_for_the_shape_and_the_gpu(shape, causal, monkeypatch):
    """The H200 runs so many programs at a time: few row blocks, or short causal sequences, get smaller tiles."""
    gpu, (B, H_q, _, N) = GPUS["H200"], shape
    monkeypatch.setattr(tile_sizes, "room", lambda device: tile_sizes.Room(gpu.block_sram, gpu.sms, tma=True))
    import torch

    sizes = {"causal": causal, "N_q": N, "N_k": N, "heads": B * H_q}
    chosen = tile_sizes.default(128, torch.bfloat16, True, torch.device("cpu"), **sizes)
    launch = compiled.launch(kernel="forward", d=128, causal=causal, shape=shape, until="config")
    assert launch.config == list(chosen)
    assert (launch.config == list(tile_sizes.HOPPER[128][0])) is (shape == (4, 16, 16, 4096))


def test_a_hash_depends_on_the_code_and_not_on_names():
    one, other = "tt.func public @_forward(%a) {\n @P0\n}", "tt.func public @_renamed(%a) {\n @P0\n}"
    assert compiled.fingerprint(one) == compiled.fingerprint(other)
    assert compiled.fingerprint(one) != compiled.fingerprint(one.replace("@P0", "@P1"))
    assert compiled.fingerprint("") == ""
    a, b, c = ("%start = muli %i, %c64_i32\nstore %start" + x for x in ("", "", "_0"))
    assert compiled.fingerprint(a) == compiled.fingerprint(b.replace("start", "first")) != compiled.fingerprint(c)


def test_options_that_only_the_compiler_sees_change_the_hash(monkeypatch):
    """Options such as enable_fp_fusion do not appear in TTGIR, but SASS depends on them."""
    answer = {"config": [16, 16, 1, 1], "ttgir": "the same"}
    hashes = set()
    for fusion in (True, False):
        monkeypatch.setattr(
            compiled, "_ask", lambda *_, f=fusion: answer | {"compile_options": [["enable_fp_fusion", f]]}
        )
        hashes.add(compiled.launch(**SMALL, until="ttgir").ttgir)
    assert len(hashes) == 2


def test_heads_that_share_K_are_those_of_the_shape():
    assert compiled.launch(kernel="backward_dkv", d=64, shape=(1, 8, 2, 512), until="config").config
    with pytest.raises(ValueError, match=r"\(1, 2, 512, 64\)"):
        compiled.launch(kernel="r5_causal", d=64, shape=(1, 8, 2, 512), until="config")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"shape": (1, 2, 48)}, r"shape is \(1, 2, 48\); pass \(B, H_q, H_k, N\)"),
        ({"shape": (1, 0, 1, 48)}, "H_q is 0"),
        ({"shape": (1, 3, 2, 48)}, "3"),
        ({"kernel": "softmax"}, "softmax takes rows of length d: leave it out"),
        ({"until": "cubin"}, "until is 'cubin'; accepted are config, ttgir, sass"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(wrong, sentence):
    asked = {"kernel": "forward", "d": 64, "shape": (1, 2, 2, 48)} | wrong
    with pytest.raises(ValueError, match=sentence):
        compiled.launch(**asked)
