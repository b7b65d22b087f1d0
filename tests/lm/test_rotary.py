"""Rotations keep norms, add up, and leave in a score only the distance between two positions."""

import numpy as np
import pytest

from flashlib.lm import rotary
from tests import oracle


def textbook(X, positions, d_rot, base=10000.0):
    """Return X rotated as transformers writes it, x * cos + rotate_half(x) * sin, in fp64."""
    inv_freq = 1.0 / base ** (np.arange(0, d_rot, 2) / d_rot)
    freqs = np.asarray(positions)[..., None] * inv_freq
    emb = np.concatenate([freqs, freqs], -1)
    x, kept = X[..., :d_rot].astype(np.float64), X[..., d_rot:].astype(np.float64)
    rotate_half = np.concatenate([-x[..., d_rot // 2 :], x[..., : d_rot // 2]], -1)
    return np.concatenate([x * np.cos(emb) + rotate_half * np.sin(emb), kept], -1)


@pytest.mark.parametrize("N, d, d_rot, base", [(37, 6, 6, 1e4), (1, 2, 2, 1e4), (53, 11, 6, 5e5), (7, 64, 64, 10)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_it_is_the_textbook_formula(N, d, d_rot, base, dtype, rng):
    X = rng.standard_normal((3, N, d)).astype(dtype)
    given = rotary.rotate(X, *rotary.angles(N, d_rot, base))
    assert given.shape == X.shape and given.dtype == dtype
    eps = max(np.finfo(dtype).eps, np.finfo(np.float32).eps)  # cos and sin are fp32
    exact = textbook(X, np.arange(N), d_rot, base)
    oracle.assert_close(given, exact, rounding=2 * eps * np.abs(X).max())
    assert np.array_equal(given[..., d_rot:], X[..., d_rot:]), "these columns stay"


def test_angles_are_rounded_once():
    cos, sin = rotary.angles(5000, 10)
    turns = np.arange(5000)[:, None] / 10000.0 ** (np.arange(5) / 5)
    assert cos.dtype == sin.dtype == np.float32 and cos.shape == sin.shape == (5000, 5)
    half_ulp = np.finfo(np.float32).eps / 2
    assert oracle.worst(cos, np.cos(turns)) <= half_ulp and oracle.worst(sin, np.sin(turns)) <= half_ulp


def test_norms_are_kept_and_position_0_changes_nothing(rng):
    X, pair = rng.standard_normal((101, 12)), rotary.angles(101, 12)
    given = rotary.rotate(X, *pair)
    oracle.assert_close(np.linalg.norm(given, axis=1), np.linalg.norm(X, axis=1), rounding=1e-6)
    assert np.array_equal(given[0], X[0]) and not np.isclose(given[1:, 0], X[1:, 0]).any()


def test_rotations_add_up(rng):
    X, (cos, sin) = rng.standard_normal((40, 8)), rotary.angles(80, 8)
    m, n = rng.integers(0, 40, (2, 40))
    twice = rotary.rotate(rotary.rotate(X, cos[m], sin[m]), cos[n], sin[n])
    oracle.assert_close(twice, rotary.rotate(X, cos[m + n], sin[m + n]), rounding=2e-6)


def test_a_score_depends_on_the_distance_only(rng):
    q, k = rng.standard_normal((2, 8))
    Q, K = (rotary.rotate(np.tile(x, (30, 1)), *rotary.angles(30, 8)) for x in (q, k))
    S = Q @ K.T  # (30, 30)
    for apart in range(-29, 30):
        line = np.diagonal(S, apart)
        oracle.assert_close(line, np.full(len(line), line[0]), rounding=1e-5)
    assert np.ptp(S) > 1, "and it does depend on that"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_torch_and_numpy_agree_and_positions_of_each_sequence_are_broadcast(dtype, rng):
    torch = pytest.importorskip("torch")
    X = torch.from_numpy(rng.standard_normal((2, 3, 5, 10))).to(getattr(torch, dtype))
    positions = torch.tensor([[4, 0, 0, 9, 2], [1, 1, 7, 3, 30]])
    cos, sin = rotary.angles(31, 8, device="cpu")
    given = rotary.rotate(X, cos[positions][:, None], sin[positions][:, None])
    assert given.dtype == X.dtype and given.shape == X.shape
    eps = max(torch.finfo(X.dtype).eps, torch.finfo(torch.float32).eps)
    for b, h in np.ndindex(2, 3):
        exact = textbook(X[b, h].double().numpy(), positions[b].numpy(), 8)
        oracle.assert_close(given[b, h].double(), exact, rounding=2 * eps * X.abs().max().item())
    as_arrays = [Y.numpy() for Y in rotary.angles(31, 8, device="cpu")]
    assert all(map(np.array_equal, as_arrays, rotary.angles(31, 8)))


def test_its_gradient_is_the_rotation_back(rng):
    torch = pytest.importorskip("torch")
    X, dY = (torch.from_numpy(rng.standard_normal((5, 6))) for _ in range(2))
    cos, sin = rotary.angles(5, 4, device="cpu")
    X.requires_grad_()
    (rotary.rotate(X, cos, sin) * dY).sum().backward()
    torch.testing.assert_close(X.grad, rotary.rotate(dY, cos, -sin), rtol=0, atol=1e-14)


X, HALF = np.zeros((3, 5, 8)), np.zeros((5, 4), np.float32)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: rotary.angles(-1, 8), ValueError, "N is -1; accepted are whole numbers of at least 0"),
        (lambda: rotary.angles(5, 8.0), TypeError, "d is 8.0; accepted are whole numbers"),
        (lambda: rotary.angles(5, 7), ValueError, "d is 7; columns are rotated in pairs: pass an even number"),
        (lambda: rotary.angles(5, 8, 0), ValueError, "base is 0; pass a positive number"),
        (lambda: rotary.angles(5, 8, np.nan), ValueError, "base is nan; pass a positive number"),
        (lambda: rotary.rotate([1.0], HALF, HALF), TypeError, "X is of type list; pass a torch tensor"),
        (lambda: rotary.rotate(X.astype(int), HALF, HALF), TypeError, "X has dtype int64; accepted are float16"),
        (lambda: rotary.rotate(X, HALF, HALF.astype(float)), TypeError, "sin has dtype float64 and cos has float"),
        (lambda: rotary.rotate(X, HALF, list(HALF)), TypeError, "sin is of type list; pass a plain NumPy array"),
        (lambda: rotary.rotate(X[0, 0], HALF, HALF), ValueError, r"X has shape \(8,\), .*; pass X \(..., N, d\)"),
        (lambda: rotary.rotate(X, HALF, HALF[:, :3]), ValueError, r"sin \(5, 3\); pass X .* both of one shape"),
        (lambda: rotary.rotate(X, HALF[:4], HALF[:4]), ValueError, "a row for each of the 5 positions of X"),
        (lambda: rotary.rotate(X[..., :7], HALF, HALF), ValueError, "with d = 7 they have at most 3 columns"),
        (
            lambda: rotary.rotate(X, *2 * [np.zeros((2, 5, 4))]),
            ValueError,
            "the axes before the last two must be those of X, or 1, or left out",
        ),
        (lambda: rotary.rotate(X[0], *2 * [HALF[None]]), ValueError, "the axes before the last two must be those"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_tensors_are_checked_like_arrays():
    torch = pytest.importorskip("torch")
    given, half = torch.from_numpy(X), torch.from_numpy(HALF)
    for wrong, error, words in (
        ((given.int(), half, half), TypeError, "X has dtype torch.int32; accepted are torch.float16"),
        ((given, half.int(), half.int()), TypeError, "cos has dtype torch.int32"),
        ((given, half, half.double()), TypeError, "sin has dtype torch.float64 and cos has torch.float32"),
        ((given, HALF, HALF), TypeError, "cos is of type ndarray; pass a torch tensor"),
        ((given, half.to("meta"), half.to("meta")), ValueError, "cos is on meta and X on cpu"),
    ):
        with pytest.raises(error, match=words):
            rotary.rotate(*wrong)
