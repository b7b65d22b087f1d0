"""Values as arrays, and whether two are equal."""

import numpy as np
import pytest

from flashlib.checks.engine.equality import as_array, same


def test_tensors_become_arrays_of_numbers():
    torch = pytest.importorskip("torch")
    assert as_array(torch.ones(2, dtype=torch.bfloat16)).dtype == np.float64
    with pytest.raises(TypeError, match="not a number"):
        as_array(torch.ones(2, dtype=torch.complex64))


def test_results_that_cancel_are_compared_relative_to_their_terms():
    noise = np.array([3e-17, -1e-17])
    assert not same(0 * noise, noise, 1e-9) and same(0 * noise, noise, 1e-9, size=2.0)
    assert not same([0.0, 1e-8], noise, 1e-9, size=2.0) and not same([3.1], [3.0], 1e-9, size=2.0)
