import numpy as np
import pytest


@pytest.hookimpl(tryfirst=True)  # before the fixtures of the test are made
def pytest_runtest_setup(item):
    if item.get_closest_marker("gpu"):
        import torch  # here: most tests do not need it

        if not torch.cuda.is_available():
            pytest.skip("needs a CUDA device")


@pytest.fixture
def rng():
    return np.random.default_rng(0)
