"""Random numbers, which are torch's own: the same generator, and the same way from its bits to numbers."""

import math

import numpy as np

from .device import sizes
from .dtypes import computing, float32, float64, int64
from .making import asked_type
from .tensor import Tensor
from .writing import options_of

BATCH = 16  # normal numbers that are made at once, of as many uniform ones


class Generator:
    """A Mersenne twister."""

    def __init__(self, device="cpu"):
        options_of((), device_=device)
        self.manual_seed(67280421310721)

    def manual_seed(self, seed):
        self._seed, self._twister, self._left = seed, None, None
        return self

    def initial_seed(self):
        return self._seed

    def words(self, n):
        """Return n random numbers of 32 bits."""
        if self._twister is None:
            self._twister = np.random.RandomState(self._seed % 2**32)  # noqa: NPY002
        return self._twister.randint(0, 2**32, n, dtype=np.uint32)

    def longs(self, n):
        """Return n random numbers of 64 bits."""
        words = self.words(2 * n).astype(np.uint64)
        return words[0::2] << np.uint64(32) | words[1::2]


default_generator = Generator()


def manual_seed(seed):
    return default_generator.manual_seed(seed)


def _uniform(n, of, generator):
    """Return n numbers from 0 to below 1 in fp64, or in fp32 for all other types."""
    words, bits = (generator.longs(n), 53) if of is float64 else (generator.words(n), 24)
    return (words & words.dtype.type(2**bits - 1)).astype(computing(of)) * computing(of).type(2.0**-bits)


def _normal(n, of, generator):
    """Return n normal numbers: by Box and Muller, of 16 uniform ones at a time, or of two if there are fewer."""
    if n < BATCH:
        return np.array([_one_normal(generator) for _ in range(n)])
    whole = n // BATCH * BATCH
    u = _uniform(whole if of.itemsize == 2 else n, of, generator)
    found = np.concatenate([_batches(u[:whole]), np.zeros(n - whole, u.dtype)])
    if n > whole:  # the last 16 are made anew
        found[-BATCH:] = _batches(_uniform(BATCH, of, generator))
    return found


def _batches(u):
    u, half = u.reshape(-1, BATCH), BATCH // 2
    radius = np.sqrt(-2 * np.log(1 - u[:, :half]))
    theta = u.dtype.type(2 * math.pi) * u[:, half:]
    return np.concatenate([radius * np.cos(theta), radius * np.sin(theta)], axis=1).reshape(-1)


def _one_normal(generator):
    """Return one normal number: two are made at a time, and one of them is left for the next call."""
    if generator._left is not None:
        found, generator._left = generator._left, None
        return found
    angle, u = _uniform(2, float64, generator)
    radius = math.sqrt(-2 * math.log1p(-u))
    generator._left = radius * math.sin(2 * math.pi * angle)
    return radius * math.cos(2 * math.pi * angle)


def _made(draw, size, generator, dtype, device, options):
    of = asked_type(dtype, device, **options) or float32
    shape = sizes(size)
    return Tensor._made(draw(math.prod(shape), of, generator or default_generator).reshape(shape), of)


def randn(*size, generator=None, dtype=None, device=None, **options):
    return _made(_normal, size, generator, dtype, device, options)


def rand(*size, generator=None, dtype=None, device=None, **options):
    return _made(_uniform, size, generator, dtype, device, options)


def randn_like(X, *, generator=None, dtype=None):
    return randn(X.shape, generator=generator, dtype=dtype or X.dtype)


def rand_like(X, *, generator=None, dtype=None):
    return rand(X.shape, generator=generator, dtype=dtype or X.dtype)


def randint(low, high, size=None, *, generator=None, dtype=None, device=None, **options):
    low, high, size = (0, low, high) if size is None else (low, high, size)

    def draw(n, of, generator):  # noqa: ARG001
        many = high - low >= 2**32
        words = generator.longs(n) if many else generator.words(n).astype(np.uint64)
        return (words % np.uint64(high - low)).astype(np.int64) + low

    return _made(draw, (size,), generator, dtype or int64, device, options)


def randperm(n, *, generator=None, dtype=None, device=None):
    order, words = np.arange(n), (generator or default_generator).words(max(0, n - 1))
    for k, word in enumerate(words.tolist()):
        other = k + word % (n - k)
        order[[k, other]] = order[[other, k]]
    return Tensor._made(order, options_of((), dtype, device) or int64)
