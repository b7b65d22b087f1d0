"""Appended rows are where the table says, rotated for their positions, and no other bit changes."""

import json
import os
import subprocess
import sys
import warnings

import pytest
import torch

from flashlib.kernels import append as module
from flashlib.kernels.append import FP8, append, rotate
from flashlib.kernels.launch import cache_layout
from flashlib.lm import rotary
from tests import oracle

H = 2
CASES = {  # keys of a page (0: contiguous, 40 keys of each sequence), N_new, d, d_v, d_rot, lengths, dtype
    "one token": (16, 1, 24, 40, 24, [1, 16, 17, 33], torch.float32),
    "two blocks": (16, 19, 19, 16, 10, [19, 40], torch.float32),
    "long pages": (64, 5, 16, 33, 16, [5, 67, 128], torch.float16),
    "no rotation": (16, 7, 40, 24, 0, [9, 23], torch.float16),
    "bf16": (16, 7, 40, 24, 32, [9, 23], torch.bfloat16),
    "contiguous": (0, 5, 24, 17, 24, [5, 40, 21], torch.float32),
    "contiguous bf16": (0, 3, 16, 16, 6, [17, 30], torch.bfloat16),
    "shorter than what is new": (16, 7, 16, 20, 16, [3, 0, 9, 1], torch.float32),
    "beyond the table": (16, 7, 16, 20, 16, [50, 47, 60], torch.float32),
    "beyond N": (0, 7, 16, 20, 16, [42, 40, 60, -3], torch.float32),
}


def problem(page, N_new, d, d_v, lengths, dtype, device, cached=None, most=3):
    """Return K, V, tensors of random bytes, both caches, which are the middle of these, and a table in any order.

    K and V have the layout of projections, (B, N, H, d); the caches have a different order of axes, too, and the
    table is part of a wider one.
    """
    B = len(lengths)
    K, V = (torch.randn(B, N_new, H, n, device=device).to(dtype).transpose(1, 2) for n in (d, d_v))
    cached = cached or dtype
    first, rows, table = (B, 40, None) if not page else (B * (most + 1), page, None)
    if page:
        wider = torch.randperm(first).to(device, torch.int32)[: B * (most + 1)].reshape(B, most + 1)
        table = wider[:, :most]
    shapes = [(first + 2, rows, H, (n + 8) * cached.itemsize) for n in (d, d_v)]
    whole = [torch.randint(256, shape, dtype=torch.uint8, device=device).view(cached) for shape in shapes]
    caches = [X[1:-1].transpose(1, 2)[..., :n] for X, n in zip(whole, (d, d_v), strict=True)]
    return K, V, whole, caches, table


def places(lengths, N_new, rows, table, pages):
    """Yield sequence, row of K, and its place in the cache: (page, row)."""
    for b, length in enumerate(lengths):
        for i in range(N_new):
            c = length - N_new + i
            if c < 0 or c >= rows * (1 if table is None else table.shape[1]):
                continue
            at = b if table is None else int(table[b, c // rows])
            if 0 <= at < pages:
                yield b, i, at, c % rows


def rotated(K, lengths, rotary_pair, positions=None):
    """Return K (B, H, N, d) rotated in fp64; rows at negative positions stay, rows past the last angle are NaN."""
    K = K.double().cpu()
    B, _, N, _ = K.shape
    if rotary_pair is None:
        return K
    cos, sin = (X.double().cpu() for X in rotary_pair)
    half = cos.shape[1]
    if positions is None:
        positions = torch.tensor(lengths)[:, None] - N + torch.arange(N)
    at = positions.cpu().long().clamp(0, len(cos) - 1)
    result = rotary.rotate(K, cos[at][:, None], sin[at][:, None])
    known = (positions.cpu() < len(cos))[:, None, :, None]
    result[..., : 2 * half] = result[..., : 2 * half].masked_fill(~known, torch.nan)
    return torch.where((positions.cpu() >= 0)[:, None, :, None], result, K)


def bits(X):
    return X.contiguous().view(torch.uint8).cpu()


def check_unwritten(whole, before, cache, where):
    """Check that all bytes outside the new rows are unchanged."""
    touched = torch.zeros(whole.shape, dtype=torch.bool)
    rows = touched[1:-1].transpose(1, 2)[..., : cache.shape[3]]
    for _, _, at, row in where:
        rows[at, :, row] = True
    same = (bits(whole) == bits(before)).unflatten(-1, (-1, whole.dtype.itemsize)).all(-1)
    assert (same | touched).all(), "what is not new stays as it was"


def check(whole, before, cache, expected, where, exact=False):
    """Compare the written rows with what is expected, in fp64, and check that all other bytes are unchanged."""
    check_unwritten(whole, before, cache, where)
    for b, i, at, row in where:
        given, wanted = cache[at, :, row].cpu().double(), expected[b, :, i]
        unknown = wanted.isnan()
        assert torch.equal(given.isnan(), unknown)
        given, wanted = given.masked_fill(unknown, 0), wanted.masked_fill(unknown, 0)
        eps = 0 if exact else torch.finfo(cache.dtype).eps / 2 + 2**-22
        oracle.assert_close(given, wanted, rounding=eps * wanted.abs().max().item())


@pytest.mark.parametrize("case", CASES)
def test_rows_are_written_where_they_belong_and_nothing_else_changes(case, device, poisoned):
    page, N_new, d, d_v, d_rot, lengths, dtype = CASES[case]
    K, V, whole, caches, table = problem(page, N_new, d, d_v, lengths, dtype, device)
    before = [X.clone() for X in whole]
    pair = rotary.angles(64 if page == 16 else 130, d_rot, device=device) if d_rot else None
    kind = torch.int64 if len(lengths) % 2 else torch.int32
    assert append(K, V, *caches, torch.tensor(lengths, dtype=kind, device=device), table, rotary=pair) is None
    where, room = list(places(lengths, N_new, page or 40, table, len(caches[0]))), 3 * page or 40
    assert len(where) == sum(max(0, min(n, room) - max(0, n - N_new)) for n in lengths)
    check(whole[0], before[0], caches[0], rotated(K, lengths, pair), where, exact=not d_rot)
    check(whole[1], before[1], caches[1], V.double().cpu(), where, exact=True)


def test_pages_that_do_not_exist_are_left_out(device):
    lengths = [20, 37]
    K, V, whole, caches, table = problem(16, 9, 16, 16, lengths, torch.float32, device)
    table[0, 1], table[1, 1], table[:, 2] = -1, len(caches[0]), torch.iinfo(torch.int32).max
    before = [X.clone() for X in whole]
    append(K, V, *caches, torch.tensor(lengths, device=device), table)
    where = list(places(lengths, 9, 16, table, len(caches[0])))
    assert len(where) == 5, "rows 11 to 15 of the first sequence"
    for X, old, cache, new in zip(whole, before, caches, (K, V), strict=True):
        check(X, old, cache, new.double().cpu(), where, exact=True)


def test_positions_may_be_given_but_not_beyond_the_last_angle(device):
    lengths = [7, 12]
    K, V, whole, caches, table = problem(16, 6, 20, 16, lengths, torch.float32, device)
    before = [X.clone() for X in whole]
    pair, length = rotary.angles(11, 14, device=device), torch.tensor(lengths, device=device)
    positions = torch.tensor([[4, 5, 5, 6, 6, 6], [10, 11, 2**31 - 1, -1, -(2**31), 0]], dtype=torch.int32)
    pair = pair[0], torch.nn.functional.pad(pair[1], (0, 3))[:, :7]  # strides of their own
    append(K, V, *caches, length, table, rotary=pair, positions=positions.to(device).mT.contiguous().mT)
    expected = rotated(K, lengths, pair, positions)
    assert expected.isnan().sum() == 2 * H * 14, "two rows have no angle, and what is not rotated stays"
    check(whole[0], before[0], caches[0], expected, list(places(lengths, 6, 16, table, len(caches[0]))))
    shared = torch.arange(6, device=device).expand(2, 6)
    oracle.assert_close(
        rotate(K, length, pair, shared).cpu(),
        rotated(K, lengths, pair, shared),
        rounding=1e-6 * K.abs().max().item(),
    )


@pytest.mark.parametrize("dtype", module.DTYPES)
@pytest.mark.parametrize("cached", [None, FP8])
def test_token_by_token_equals_all_at_once_and_pages_equal_a_contiguous_cache(dtype, cached, device):
    lengths, N_new, page = [11, 4], 4, 8
    K, V, _, caches, table = problem(page, N_new, 18, 16, lengths, dtype, device, cached, most=2)
    first = len(caches[0])
    pair = rotary.angles(16, 18, device=device)
    length = torch.tensor(lengths, device=device)

    def scales(*shape):
        return {name: torch.zeros(shape, device=device) for name in ("k_scale", "v_scale") if cached}

    kept, kept_scales = [X.clone() for X in caches], scales(first, H, page)
    append(K, V, *kept, length, table, rotary=pair, **kept_scales)
    one_by_one, its_scales = [X.clone() for X in caches], scales(first, H, page)
    for i in range(N_new):
        one = K[:, :, i : i + 1], V[:, :, i : i + 1]
        append(*one, *one_by_one, length - N_new + i + 1, table, rotary=pair, **its_scales)
    straight = [torch.zeros(2, H, 16, X.shape[3], dtype=X.dtype, device=device) for X in caches]
    straight_scales = scales(2, H, 16)
    append(K, V, *straight, length, rotary=pair, **straight_scales)

    all_kept, all_one = [*kept, *kept_scales.values()], [*one_by_one, *its_scales.values()]
    for in_pages, other, plain in zip(all_kept, all_one, [*straight, *straight_scales.values()], strict=True):
        assert torch.equal(bits(in_pages), bits(other))
        for b, c in ((b, c) for b, n in enumerate(lengths) for c in range(n - N_new, n)):
            assert torch.equal(bits(in_pages[table[b, c // page], :, c % page]), bits(plain[b, :, c]))


@pytest.mark.parametrize("dtype", module.DTYPES)
@pytest.mark.parametrize("N, d_rot", [(1, 40), (21, 40), (5, 6)])
def test_queries_are_rotated_as_keys_are(dtype, N, d_rot, device, poisoned):
    lengths = [N + 3, N, max(N - 2, 0)]
    Q = torch.randn(3, N, 3, 40, device=device).to(dtype).transpose(1, 2)
    pair, length = rotary.angles(40, d_rot, device=device), torch.tensor(lengths, device=device)
    given = rotate(Q, length, pair)
    assert given.shape == Q.shape and given.dtype == dtype
    exact = rotated(Q, lengths, pair)
    rounding = (torch.finfo(dtype).eps / 2 + 2**-22) * exact.abs().max().item()
    oracle.assert_close(given.double().cpu(), exact, rounding=rounding)
    assert torch.equal(given[..., d_rot:], Q[..., d_rot:])
    before = max(0, N - lengths[2])
    assert torch.equal(given[2, :, :before], Q[2, :, :before]), "rows before position 0"
    cache = torch.zeros(3, 3, N + 3, 40, device=device, dtype=dtype)
    append(Q, Q, cache, cache.clone(), length, rotary=pair)
    assert all(torch.equal(cache[b, :, n - N : n], given[b]) for b, n in enumerate(lengths[:2]))


@pytest.mark.parametrize("dtype", module.DTYPES)
def test_fp8_rows_have_a_scale_each_and_an_error_within_theory(dtype, device):
    lengths, N_new = [13, 21], 9
    K, V, whole, caches, table = problem(16, N_new, 24, 40, lengths, dtype, device, FP8)
    sizes = torch.logspace(-4, 4, N_new, device=device).to(dtype)[:, None]
    K, V = K * sizes, V * sizes
    V[0, 0, 2], V[1, 1, 3] = 0, 0
    K[0, 1, 4] = 0
    if dtype != torch.float16:
        V[0, 0, 5, 0], V[1, 0, 1] = 3e38, 1e-39 * torch.rand(40, device=device).to(dtype)
    before, pair = [X.clone() for X in whole], rotary.angles(20, 16, device=device)  # none for position 20
    scales = [torch.full(cache.shape[:3], torch.nan, device=device) for cache in caches]
    scales[1] = scales[1].mT.contiguous().mT  # strides of its own
    length = torch.tensor(lengths, device=device)
    append(K, V, *caches, length, table, rotary=pair, k_scale=scales[0], v_scale=scales[1])

    where, exact_K = list(places(lengths, N_new, 16, table, len(caches[0]))), rotated(K, lengths, pair)
    assert scales[0].isfinite().sum() == scales[1].isfinite().sum() == H * len(where)
    for b, i, at, row in where:
        x, scale = V[b, :, i].cpu().float(), scales[1][at, :, row].cpu()  # on a GPU torch divides with less care
        largest = x.abs().amax(1)
        formula = torch.where(largest > 0, (largest / 448).clamp(min=2.0**-126), 1.0)
        assert torch.equal(scale, formula)
        assert torch.equal(bits(caches[1][at, :, row]), bits((x / scale[:, None]).to(FP8)))
        for exact, cache, scale in ((exact_K, caches[0], scales[0]), (V.double().cpu(), caches[1], scales[1])):
            exact, stored = exact[b, :, i], cache[at, :, row].cpu().double()
            scale, unknown = scale[at, :, row].cpu().double()[:, None], exact.isnan()
            assert torch.equal(stored.isnan(), unknown)
            stored, exact = stored.masked_fill(unknown, 0), exact.masked_fill(unknown, 0)
            half_ulp = torch.maximum(exact.abs() * 2.0**-4, scale * 2.0**-10)  # of normal numbers, and of others
            largest = exact.abs().amax(1, keepdim=True)
            assert ((stored * scale - exact).abs() <= half_ulp + largest * 2.0**-21).all()
            ordinary = (largest > 1e-30)[:, 0]
            assert (stored.abs().amax(1)[ordinary] == 448).all(), "a row takes all of the range"
    for X, old, cache in zip(whole, before, caches, strict=True):
        check_unwritten(X, old, cache, where)


LENGTHS, TABLE = torch.tensor([5, 16]), torch.tensor([[1, 0], [2, 3]], dtype=torch.int32)
X, CACHE, HALF = torch.zeros(2, 1, 3, 16), torch.zeros(4, 1, 16, 16), torch.zeros(20, 8)
FULL = dict(K=X, V=X, K_cache=CACHE, V_cache=CACHE, lengths=LENGTHS, table=TABLE, rotary=(HALF, HALF))
IN_FP8 = dict(K_cache=CACHE.to(FP8), V_cache=CACHE.to(FP8), k_scale=CACHE[..., 0], v_scale=CACHE[..., 0])


@pytest.mark.parametrize(
    "changed, error, words",
    [
        ({"K": X.numpy()}, TypeError, "K is of type ndarray; pass a torch tensor"),
        ({"V": X.half()}, TypeError, "V has dtype torch.float16 and K has torch.float32"),
        ({"K": X.double()}, TypeError, "K has dtype torch.float64; accepted are torch.float16"),
        ({"K": X[0]}, ValueError, r"K has shape \(1, 3, 16\); expected 4 axes \(B, H, N, d\)"),
        ({"V": X[:, :, :2]}, ValueError, r"K has shape \(2, 1, 3, 16\) and V \(2, 1, 2, 16\); they must be equal"),
        ({"V": X[..., :8]}, ValueError, "V has d = 8; the kernel takes 16 to 256"),
        ({"K": X.clone().requires_grad_()}, ValueError, "K requires a gradient, and this kernel has no backward"),
        ({"lengths": [5, 16]}, TypeError, r"lengths is of type list; pass a torch tensor \(B,\) of torch.int32"),
        ({"lengths": LENGTHS.float()}, TypeError, "lengths has dtype torch.float32; accepted are torch.int32 and"),
        ({"lengths": LENGTHS[:1]}, ValueError, r"lengths has shape \(1,\); expected \(B,\) here \(2\)"),
        ({"lengths": LENGTHS.to("meta")}, ValueError, "lengths is on meta and K on cpu; move them to one device"),
        ({"table": TABLE.long()}, TypeError, "table has dtype torch.int64; accepted are torch.int32"),
        ({"table": TABLE[None]}, ValueError, r"table has shape \(1, 2, 2\); expected \(B, most\) here \(2, any\)"),
        ({"table": None}, ValueError, r"K_cache has shape .*; expected \(B, H_k, N, d\) here \(2, 1, 16, 16\)"),
        ({"K_cache": CACHE[0]}, ValueError, r"K_cache has shape \(1, 16, 16\); expected \(pages, H_k, page, d\)"),
        ({"V_cache": CACHE[:3]}, ValueError, r"V_cache has shape .*; expected .* d_v\) here \(4, 1, 16, 16\)"),
        ({"V_cache": CACHE.half()}, TypeError, "V_cache has dtype torch.float16 and K_cache has torch.float32"),
        (
            dict(K_cache=CACHE.half(), V_cache=CACHE.half()),
            TypeError,
            "K_cache has dtype torch.float16; accepted are",
        ),
        (
            dict(K_cache=CACHE[:, :, :12], V_cache=CACHE[:, :, :12]),
            ValueError,
            "pages of 12 keys; pass pages of a power",
        ),
        ({"K_cache": CACHE.mT}, ValueError, r"K_cache has strides \(256, 256, 1, 16\); it is written in place"),
        ({"V_cache": CACHE[:1].expand(4, 1, 16, 16)}, ValueError, "V_cache has strides .*, which is not expanded"),
        ({"rotary": HALF}, TypeError, r"rotary is of type Tensor; pass \(cos, sin\)"),
        ({"rotary": (HALF, None)}, TypeError, "sin is of type NoneType; pass a torch tensor"),
        ({"rotary": (HALF.double(), HALF)}, TypeError, "cos has dtype torch.float64; accepted are torch.float32"),
        (
            {"rotary": (HALF, HALF[:9])},
            ValueError,
            r"sin has shape \(9, 8\); expected the shape of cos, here \(20, 8\)",
        ),
        (
            {"rotary": 2 * (torch.zeros(20, 9),)},
            ValueError,
            "have 9 columns and K d = 16; pass d_rot / 2 of them, 1 to 8",
        ),
        ({"positions": TABLE}, ValueError, r"positions has shape \(2, 2\); expected \(B, N\) here \(2, 3\)"),
        (
            {"positions": X[:, 0, :, 0]},
            TypeError,
            "positions has dtype torch.float32; accepted are torch.int32 and",
        ),
        (dict(positions=X[:, 0, :, 0].int(), rotary=None), ValueError, "positions is given and rotary is not"),
        ({"v_scale": CACHE[..., 0]}, ValueError, "v_scale is given, and caches of torch.float32 have no scales"),
        (IN_FP8 | {"k_scale": None}, TypeError, "k_scale is of type NoneType; pass a torch tensor"),
        (IN_FP8 | {"v_scale": X}, ValueError, r"v_scale has shape .*; expected .* here \(4, 1, 16\)"),
        (IN_FP8 | {"v_scale": CACHE[..., 0].half()}, TypeError, "v_scale has dtype torch.float16; accepted are"),
    ],
)
def test_bad_input_is_refused(changed, error, words, monkeypatch):
    monkeypatch.setattr(module, "check_device", lambda **_: None)  # the same on a machine with a GPU
    with pytest.raises(error, match=words):
        append(**FULL | changed)
    assert not CACHE.any()


@pytest.mark.parametrize("of", [{}, IN_FP8, {"rotary": None}, {"positions": X[:, 0, :, 0].long()}])
def test_the_fixes_that_errors_recommend_are_accepted(of):
    given = FULL | dict(k_scale=None, v_scale=None, positions=None) | of
    names = "K", "V", "K_cache", "V_cache", "k_scale", "v_scale", "lengths", "table", "positions"
    module._check(*(given[name] for name in names), *module._pair(given["rotary"]))


@pytest.mark.parametrize(
    "changed, error, words",
    [
        ({"Q": X[0]}, ValueError, "Q has shape"),
        ({"Q": X.clone().requires_grad_()}, ValueError, "Q requires a gradient"),
        ({"rotary": None}, TypeError, r"rotary is None; pass \(cos, sin\)"),
        ({"rotary": (None, HALF)}, TypeError, "cos is of type NoneType; pass a torch tensor"),
        ({"lengths": LENGTHS[:1]}, ValueError, r"lengths has shape \(1,\)"),
        ({"positions": LENGTHS}, ValueError, r"positions has shape \(2,\); expected \(B, N\) here \(2, 3\)"),
    ],
)
def test_bad_queries_are_refused(changed, error, words, monkeypatch):
    monkeypatch.setattr(module, "check_device", lambda **_: None)
    with pytest.raises(error, match=words):
        rotate(**dict(Q=X, lengths=LENGTHS, rotary=(HALF, HALF)) | changed)


def test_fp8_requires_a_gpu_that_has_it(monkeypatch):
    monkeypatch.setattr(module, "check_device", lambda **_: None)
    monkeypatch.setattr(cache_layout, "_has_fp8", lambda device: False)
    with pytest.raises(
        ValueError, match="takes a GPU of compute capability 8.9 or later .*: pass caches of torch.fl"
    ):
        append(**FULL | IN_FP8)


def test_nothing_new_writes_nothing(device):
    K, V, whole, caches, table = problem(16, 3, 16, 16, [5, 7], torch.bfloat16, device)
    before, length = [X.clone() for X in whole], torch.tensor([5, 7], device=device)
    pair = rotary.angles(9, 16, device=device)
    append(K[:, :, :0], V[:, :, :0], *caches, length, table, rotary=pair)
    append(K[:0], V[:0], *caches, length[:0], table[:0], rotary=pair)
    assert all(torch.equal(bits(X), bits(old)) for X, old in zip(whole, before, strict=True))
    assert rotate(K[:, :, :0], length, pair).shape == (2, H, 0, 16)


# The compiler may refuse what the interpreter accepts; and few kernels are compiled for many sizes.
COMPILE = """
import contextlib, json, re, sys
import torch
from triton import JITFunction
from flashlib.private_apis import of_compiler
from flashlib.lm import rotary
from flashlib.kernels.compiler.compiling_launcher import CompilingLauncher
from flashlib.kernels.launch import inputs
capability = int(sys.argv[1])
inputs.check_device = lambda **_: None
of_compiler.show_ptxas()
launches = CompilingLauncher()
of_compiler.pretend_gpu(capability)
from flashlib.kernels.append import FP8, append, rotate

def call(N_new, d, dtype, cached, d_rot, most, N=500, given=False):
    K, length = torch.empty(2, 3, N_new, d, dtype=dtype), torch.zeros(2, dtype=torch.int64)
    cache = torch.empty(9 if most else 2, 3, 16 if most else N, d, dtype=cached)
    table = torch.zeros(2, most, dtype=torch.int32) if most else None
    scale = torch.empty(cache.shape[:3]) if cached == FP8 else None
    positions = torch.zeros(2, N_new, dtype=torch.int32) if given else None
    pair = rotary.angles(N, d_rot, device="cpu") if d_rot else None
    append(K, K, cache, cache, length, table, rotary=pair, positions=positions, k_scale=scale, v_scale=scale)
    if pair:
        rotate(K, length, pair, positions)

bf16, fp16, fp32 = torch.bfloat16, torch.float16, torch.float32
calls = [(1, 128, bf16, bf16, 128, 5), (19, 256, fp16, fp16, 64, 5), (5, 80, fp32, fp32, 0, 0)]
calls += [(1, 128, bf16, FP8, 128, 5), (19, 256, fp16, FP8, 256, 0)] * (capability >= 89)
for of in calls:
    for name in ("_append", "_rotate")[: 1 + bool(of[4])]:
        launches.prepare(name, "cubin")
        with contextlib.redirect_stdout(launches.log):
            call(*of, given=of[0] == 19)
        spilled = int(re.search(r"([0-9]+) bytes spill stores", launches.log.getvalue())[1])
        print(json.dumps([name, spilled, "satfinite.e4m3" in launches.compiled.asm["ptx"]]))

def look_up(kernel, *args, grid, warmup, **options):
    _, specialization, rest = kernel.device_caches[capability][-1](*args, **options)
    found.setdefault(kernel.__name__, set()).add(str((specialization, rest)))

JITFunction.run, found = look_up, {}
for n in range(1, 41):
    call(1, 64, bf16, bf16, 64, most=n, N=100 + n)
    call(1, 64, bf16, bf16, 64, most=0, N=100 + n)
    call(16, 64, bf16, bf16, 64, most=n, N=100 + n)
print(json.dumps({name: len(variants) for name, variants in found.items()}))
"""


@pytest.mark.process
@pytest.mark.parametrize("capability", [80, 90])
def test_it_compiles_without_spills_and_few_times(capability):
    command = [sys.executable, "-c", COMPILE, str(capability)]
    environment = os.environ | {"TRITON_INTERPRET": "0", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    *compiled, counts = map(json.loads, done.stdout.splitlines())
    assert len(compiled) == (9 if capability == 90 else 5)
    assert not any(spilled for _, spilled, _ in compiled)
    assert sum(in_fp8 for _, _, in_fp8 in compiled) == (2 if capability == 90 else 0)
    assert counts == {"_append": 3, "_rotate": 2}, "pages or not, and 1 or 16 rows of a program"


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", module.DTYPES)
def test_rotation_is_that_of_transformers(dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("transformers")
        from transformers.models.llama.modeling_llama import apply_rotary_pos_emb
    lengths, N = [37, 21], 13
    Q, K = (torch.randn(2, heads, N, 128, device="cuda").to(dtype) for heads in (4, H))
    cos, sin = rotary.angles(64, 128, device="cuda")
    length = torch.tensor(lengths, device="cuda")
    positions = length[:, None] - N + torch.arange(N, device="cuda")
    doubled = [torch.cat([X, X], -1)[positions] for X in (cos, sin)]  # (B, N, d)
    theirs = apply_rotary_pos_emb(Q.float(), K.float(), *doubled)
    cache = torch.zeros(2, H, 40, 128, device="cuda", dtype=dtype)
    append(K, K, cache, cache.clone(), length, rotary=(cos, sin))
    written = torch.stack([cache[b, :, n - N : n] for b, n in enumerate(lengths)])
    for given, exact in zip((rotate(Q, length, (cos, sin)), written), theirs, strict=True):
        rounding = (torch.finfo(dtype).eps / 2 + 2**-22) * exact.abs().max().item()
        oracle.assert_close(given.double().cpu(), exact.double().cpu(), rounding=rounding)


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.parametrize("cached", [None, FP8])
def test_a_step_is_one_graph_for_any_lengths_and_nothing_waits(cached):
    if cached and not cache_layout._has_fp8(torch.device("cuda")):
        pytest.skip("this GPU has no fp8")
    K, V, _, caches, table = problem(16, 3, 64, 64, [5, 40], torch.bfloat16, "cuda", cached)
    pair, length = rotary.angles(64, 64, device="cuda"), torch.tensor([5, 40], device="cuda")
    named = [torch.zeros(X.shape[:3], device="cuda") for X in caches] if cached else [None, None]

    def step():
        append(K, V, *caches, length, table, rotary=pair, k_scale=named[0], v_scale=named[1])
        return rotate(K, length, pair)

    step()  # compiles
    torch.cuda.set_sync_debug_mode("error")
    try:
        step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        turned = step()
    for lengths in ([7, 9], [48, 2], [3, 33]):
        length.copy_(torch.tensor(lengths))
        old = [X.clone() for X in caches]
        graph.replay()
        replayed, q = [X.clone() for X in caches], turned.clone()
        for X, before in zip(caches, old, strict=True):
            X.view(torch.uint8).copy_(before.view(torch.uint8))
        assert torch.equal(step(), q)
        assert all(torch.equal(bits(X), bits(Y)) for X, Y in zip(caches, replayed, strict=True))
        assert not all(torch.equal(bits(X), bits(Y)) for X, Y in zip(caches, old, strict=True))
