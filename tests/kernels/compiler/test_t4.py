"""Colab lends everyone a T4: every kernel but Hopper's compiles for it, with Colab's own Triton too.

With the Triton of requirements.txt these run in the suite. To run them with Colab's Triton, which is in TRIED of
`private_apis.tried`, where it, its torch and pytest are installed, but none of the tests' other packages:
python -m pytest --noconftest -o filterwarnings= tests/kernels/compiler/test_t4.py
"""

import pytest

from flashlib.kernels.compiler import compiled, registry

T4 = 75
KERNELS = sorted(name for name in registry.kernels() if not name.startswith("hopper_"))


@pytest.mark.compiles
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_compiles_for_a_t4(kernel):
    causal = {"causal": True} if "causal" in registry.options_of(kernel) else {}
    report = compiled.report(kernel=kernel, capability=T4, dtype="float16", d=64, sass=False, **causal)
    assert report.fits and report.registers > 0 and report.ptx
