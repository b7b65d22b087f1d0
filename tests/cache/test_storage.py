"""The storage of a paged cache: rows are as written, in every dtype, and invalid calls change nothing."""

import subprocess
import sys

import numpy as np
import pytest

from flashlib.cache import Cache, Pages, bytes_per_token
from tests.cache.paged import D_V, H_K, LAYERS, D, computed, plain, prompt, state

ON_GPU = [pytest.param(f"torch.{name} on cuda", marks=pytest.mark.gpu) for name in ("bfloat16", "float8_e4m3fn")]


@pytest.mark.parametrize("dtype", ["float32", "torch.float32", "torch.bfloat16", "torch.float8_e4m3fn", *ON_GPU])
@pytest.mark.parametrize("drop", [0, 1, 3, 5], ids="drop {}".format)
def test_a_write_leaves_the_rows_of_a_fork_as_they_were(dtype, drop, rng):
    cache, write = filled(dtype)
    first, _ = cache.start()
    write(first, prompt(rng, 7), rng)
    second, left = cache.fork(first), 7 - drop
    cache.drop(second, drop)
    before = gathered(cache, first) + [X[:, :left] for X in gathered(cache, second)]
    write(second, prompt(rng, 6), rng)
    write(second, 5, rng)
    after = gathered(cache, first) + [X[:, :left] for X in gathered(cache, second)]
    for X, same in zip(before, after, strict=True):
        assert X.tobytes() == same.tobytes() and np.isfinite(X).all() and X.any()
    a, b = plain(cache.table([first, second]))
    assert (a[: left // 4] == b[: left // 4]).all() and not set(a[left // 4 : 2]) & set(b)
    cache.check()


def gathered(cache, sequence):
    """Return K and V of all layers as arrays."""
    return [plain_of(X) for layer in range(LAYERS) for X in cache.gather(sequence, layer)]


def plain_of(X):
    return X if isinstance(X, np.ndarray) else X.float().cpu().numpy()


def filled(dtype):
    """Return a cache, and a function that appends tokens to a sequence and writes random rows."""
    if dtype.startswith("torch."):
        torch = pytest.importorskip("torch")
        name, _, device = dtype.removeprefix("torch.").partition(" on ")
        of = getattr(torch, name)
        cache = Cache(13, 4, H_K, D, d_v=D_V, layers=LAYERS, dtype=of, device=device or None)
        of = torch.float32 if cache.k_scale is not None else of
    else:
        cache, of = Cache(13, 4, H_K, D, d_v=D_V, layers=LAYERS, dtype=dtype), dtype

    def write(sequence, tokens, rng):
        slots = cache.append(sequence, tokens)
        rows = [[rng.standard_normal((H_K, len(slots), d)) for d in (D, D_V)] for _ in range(LAYERS)]
        for layer, (K, V) in enumerate(rows):
            if isinstance(cache.K, np.ndarray):
                cache.write(slots, K.astype(of), V.astype(of), layer)
            else:
                cache.write(slots, *(torch.from_numpy(X).to(cache.K.device, of) for X in (K, V)), layer=layer)

    return cache, write


def test_a_table_of_fixed_width_is_padded_with_0_and_lengths_say_what_counts(rng):
    cache, _ = filled("float32")
    sequences = [computed(cache, prompt(rng, n))[0] for n in (9, 0, 4)]
    for pages, kind in ((cache, np.ndarray), (Pages(13, 4), np.ndarray)):
        assert type(pages.table([])) is kind and pages.table([]).shape == (0, 0)
        assert pages.table([], width=7).shape == (0, 7) and pages.lengths([]).shape == (0,)
    table, lengths = cache.table(sequences, width=5), cache.lengths(sequences)
    assert table.dtype == lengths.dtype == np.int32 and table.shape == (3, 5)
    assert lengths.tolist() == [9, 0, 4]
    assert not table[:, 3:].any() and not table[1].any() and not table[2, 1:].any()
    assert len({*table[0, :3].tolist(), int(table[2, 0])}) == 4
    assert np.array_equal(cache.table(sequences), table[:, :3])


def test_tensors_have_tables_and_lengths_on_their_device():
    torch = pytest.importorskip("torch")
    cache = Cache(5, 4, H_K, D, dtype=torch.bfloat16, device="cpu")
    sequence, _ = computed(cache, [1, 2, 3, 4, 5])
    for X in (cache.table([sequence]), cache.lengths([sequence]), cache.table([])):
        assert isinstance(X, torch.Tensor) and X.dtype == torch.int32 and X.device == cache.K.device
    assert cache.table([sequence], 3).shape == (1, 3) and cache.V.shape == (1, 5, H_K, 4, D)
    assert cache.k_scale is None and cache.v_scale is None


def test_slots_of_several_sequences_may_be_written_in_one_call(rng):
    cache, _ = filled("float64")
    sequences = [cache.start()[0] for _ in range(3)]
    slots = [cache.append(sequence, n) for sequence, n in zip(sequences, (5, 0, 7), strict=True)]
    K, V = (rng.standard_normal((H_K, 12, d)) for d in (D, D_V))
    cache.write(np.concatenate(slots), K, V, layer=1)
    for sequence, own in zip(sequences, (slice(0, 5), slice(5, 5), slice(5, 12)), strict=True):
        for X, expected in zip(cache.gather(sequence, 1), (K, V), strict=True):
            assert np.array_equal(X, expected[:, own]) and X.flags.c_contiguous
        assert not any(X.any() for X in cache.gather(sequence, 0)), "another layer was written"


@pytest.mark.parametrize("largest", [1.0, 1e-30, 1e30])
def test_each_row_in_8_bits_has_its_own_scale(largest, rng):
    torch = pytest.importorskip("torch")
    cache = Cache(5, 4, H_K, D, d_v=D_V, layers=LAYERS, dtype=torch.float8_e4m3fn)
    sequence, _ = cache.start()
    slots = cache.append(sequence, 11)
    K, V = (torch.from_numpy(rng.standard_normal((H_K, 11, d)) * largest).float() for d in (D, D_V))
    K[1, 4], K[0, 4] = 0, 1e-40
    cache.write(slots, K, V, layer=1)
    for X, given in zip((K, V), cache.gather(sequence, 1), strict=True):
        scale = (X.abs().amax(-1, keepdim=True) / 448).clamp(min=2.0**-126)
        finest = scale * 2.0**-10  # half the least number of e4m3
        assert given.dtype == torch.float32 and given.is_contiguous()
        assert ((given - X).abs() <= X.abs() * 2.0**-4 * 1.0001 + finest).all(), "half a unit of 4 bits"
    page, row = slots[4].tolist()
    assert not cache.gather(sequence, 1)[0][1, 4].any() and cache.k_scale[1, page, 1, row] == 1
    assert cache.k_scale[1, page, 0, row] == 2.0**-126, "a smaller one has too few digits"
    assert cache.K.dtype == torch.float8_e4m3fn and cache.k_scale.shape == cache.K.shape[:-1]


@pytest.mark.parametrize("dtype", ["float16", "torch.float16", "torch.float8_e4m3fn"])
def test_unwritten_rows_of_a_new_cache_do_not_spoil_a_product(dtype):
    cache, _ = filled(dtype)
    assert not plain_of(cache.K).any() and not plain_of(cache.V).any()


def test_bytes_per_token_match_the_storage():
    torch = pytest.importorskip("torch")
    for dtype, scales in ((torch.bfloat16, False), (torch.float8_e4m3fn, True)):
        cache = Cache(13, 4, H_K, D, d_v=D_V, layers=LAYERS, dtype=dtype)
        stored = [X for X in (cache.K, cache.V, cache.k_scale, cache.v_scale) if X is not None]
        each = bytes_per_token(H_K, D, D_V, itemsize=dtype.itemsize, layers=LAYERS, scales=scales)
        assert each * 13 * 4 == sum(X.numel() * X.element_size() for X in stored)
    assert bytes_per_token(8, 128, itemsize=2, layers=32) == 131072  # Llama 3 8B
    assert bytes_per_token(*np.uint8([8, 128]), itemsize=np.uint8(2), layers=np.uint8(32)) == 131072


MISTAKES = {
    "unknown sequence": (lambda c: c.append(99, 1), ValueError, "there is no sequence 99"),
    "freed sequence": (lambda c: c.free(1), ValueError, "there is no sequence 1"),
    "True for 1": (lambda c: c.fork(True), ValueError, "there is no sequence True"),
    "sequence 0.0": (lambda c: c.lengths([0.0]), ValueError, "there is no sequence 0.0"),
    "dropped more than it has": (lambda c: c.drop(0, 7), ValueError, "n is 7 and sequence 0 has 6"),
    "dropped -1": (lambda c: c.drop(0, -1), ValueError, "n is -1"),
    "float ids": (lambda c: c.append(0, [1, 2.0]), TypeError, "tokens has 2.0"),
    "float array": (lambda c: c.append(0, np.ones(2)), TypeError, "tokens has 1.0"),
    "float count": (lambda c: c.append(0, 2.0), TypeError, "tokens is 2.0"),
    "bool id": (lambda c: c.start([True]), TypeError, "tokens has True"),
    "negative id": (lambda c: c.start([-1]), TypeError, "tokens has -1"),
    "negative count": (lambda c: c.append(0, -1), ValueError, "tokens is -1"),
    "text": (lambda c: c.append(0, "text"), TypeError, "tokens is 'text'"),
    "rows of ids": (lambda c: c.append(0, [[1]]), TypeError, "tokens has"),
    "width too small": (lambda c: c.table([0], width=1), ValueError, "width is 1 and a sequence has 2 pages"),
    "K too long": (lambda c: c.write(*rows(n=5)), ValueError, r"K has shape \(3, 5, 5\); for 6 slots"),
    "heads and tokens": (lambda c: c.write(*rows(H=6, n=3)), ValueError, r"K has shape \(6, 3, 5\)"),
    "V with d": (lambda c: c.write(*rows(d_v=5)), ValueError, r"V has shape .* it is \(3, 6, 2\)"),
    "another dtype": (lambda c: c.write(*rows(dtype="float64")), TypeError, "K has dtype float64; the cache has"),
    "integers": (lambda c: c.write(*rows(dtype="int64")), TypeError, "K has dtype int64"),
    "a list": (lambda c: c.write(rows()[0], [1], [2]), TypeError, "K is of type list"),
    "layer 2 of 2": (lambda c: c.write(*rows(), layer=2), ValueError, "layer is 2; the cache has 2"),
    "layer -1": (lambda c: c.gather(0, -1), ValueError, "layer is -1"),
    "flat slots": (lambda c: c.write(np.arange(6), *rows()[1:]), ValueError, r"slots has shape \(6,\)"),
    "float slots": (lambda c: c.write(rows()[0] * 1.0, *rows()[1:]), ValueError, "dtype float64"),
    "row 4 of 4": (lambda c: c.write(with_slot(1, 4), *rows()[1:]), ValueError, "not there"),
    "row -1": (lambda c: c.write(with_slot(1, -1), *rows()[1:]), ValueError, "not there"),
    "page 13 of 13": (lambda c: c.write(with_slot(13, 0), *rows()[1:]), ValueError, "not there"),
    "page of nobody": (lambda c: c.write(rows()[0] + [[9, 0]], *rows()[1:]), ValueError, "without an owner"),
}


def rows(n=6, H=H_K, d=D, d_v=D_V, dtype="float32"):
    """Return slots of six tokens, and K and V."""
    slots = np.array([divmod(at, 4) for at in range(6)], np.int32)
    return slots, np.ones((H, n, d), dtype), np.ones((H, n, d_v), dtype)


def with_slot(*slot):
    """Return slots of which the last is another."""
    return np.array([*rows()[0][:-1].tolist(), slot], np.int32)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_says_so_and_changes_nothing(mistake, rng):
    call, kind, words = MISTAKES[mistake]
    cache, write = filled("float32")
    first, _ = cache.start()
    write(first, prompt(rng, 6), rng)
    cache.free(computed(cache, prompt(rng, 9))[0])
    before = state(cache)
    with pytest.raises(kind, match=words):
        call(cache)
    assert state(cache) == before
    cache.check()


@pytest.mark.parametrize(
    "sizes, kind, words",
    [
        ({"page": 12}, ValueError, "page is 12; accepted are powers of two"),
        ({"page": 0}, ValueError, "page is 0"),
        ({"n_pages": 2.0}, TypeError, "n_pages is 2.0"),
        ({"n_pages": 0}, ValueError, "n_pages is 0"),
        ({"d_v": 0}, ValueError, "d_v is 0"),
        ({"layers": True}, TypeError, "layers is True"),
        ({"dtype": "int8"}, TypeError, "dtype is 'int8'; accepted are float16"),
        ({"dtype": None}, TypeError, "dtype is None"),
        ({"dtype": "no such"}, TypeError, "dtype is 'no such'"),
        ({"device": "cuda"}, ValueError, "device is 'cuda' and float32"),
    ],
)
def test_impossible_sizes_and_dtypes_are_refused(sizes, kind, words):
    with pytest.raises(kind, match=words):
        Cache(**{"n_pages": 5, "page": 4, "H_k": 2, "d": 3} | sizes)


def test_tensors_and_arrays_are_not_mixed(rng):
    torch = pytest.importorskip("torch")
    for dtype, words in ((torch.float32, "K is of type ndarray"), (torch.float8_e4m3fn, "K is of type ndarray")):
        cache = Cache(5, 4, H_K, D, d_v=D_V, dtype=dtype)
        computed(cache, prompt(rng, 6))
        with pytest.raises(TypeError, match=words):
            cache.write(*rows())
        with pytest.raises(TypeError, match="K has dtype torch.float64"):
            cache.write(rows()[0], *map(torch.from_numpy, rows(dtype="float64")[1:]))
        assert not plain_of(cache.K).any()
    with pytest.raises(TypeError, match="dtype is torch.int8; accepted are torch.float16"):
        Cache(5, 4, H_K, D, dtype=torch.int8)


def test_tensors_that_need_a_gradient_are_written_without_it(rng):
    torch = pytest.importorskip("torch")
    cache = Cache(5, 4, H_K, D, d_v=D_V, dtype=torch.float32)
    sequence, _ = computed(cache, prompt(rng, 6))
    slots, *K_and_V = rows()
    cache.write(slots, *(torch.from_numpy(X).requires_grad_() for X in K_and_V))
    assert all((X == 1).all() and not X.requires_grad for X in cache.gather(sequence))


def test_numpy_is_all_that_an_array_cache_needs():
    code = (
        "import sys\nfrom flashlib.cache import Cache\ncache = Cache(5, 4, 2, 3)\n"
        "cache.append(cache.start()[0], 6)\nassert cache.used == 2 and 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
