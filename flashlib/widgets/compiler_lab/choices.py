"""What can be chosen in CompilerLab, and which settings a kernel takes."""

from numbers import Integral

SETTINGS = {"kernel": "forward", "d": 128, "dtype": "bfloat16", "capability": 90, "causal": False}
SETTINGS |= dict.fromkeys(("B_r", "B_c", "num_warps", "num_stages", "descriptors"))  # None: the kernel chooses
ALWAYS = {"kernel", "d", "dtype", "capability"}
SIZES = {
    "d": (16, 32, 64, 128, 256),
    "B_r": (None, 16, 32, 64, 128, 256),
    "B_c": (None, 16, 32, 64, 128, 256),
    "num_warps": (None, 1, 2, 4, 8, 16),
    "num_stages": (None, 1, 2, 3, 4, 5, 6),
}


def offered() -> dict:
    """Return the options that the page lists: kernels with their group and settings, GPUs, and sizes."""
    from flashlib.kernels.compiler import makers, occupancy, registry

    kernels = [[name, _group(name), sorted(settings_of(name))] for name in registry.kernels()]
    gpus = [
        [c, f"{', '.join(m.gpus)} ({makers.target(c)})", makers.maker_of(c).name]
        for c, m in occupancy.MULTIPROCESSORS.items()
    ]
    newest_first = sorted(gpus[::-1], key=lambda gpu: gpu[-1], reverse=True)  # NVIDIA's before AMD's
    return {"kernel": kernels, "capability": newest_first} | {name: list(sizes) for name, sizes in SIZES.items()}


def settings_of(kernel: str) -> set:
    """Return the names of the settings that a kernel takes; all of them if there is no such kernel."""
    from flashlib.kernels.compiler import registry

    return ALWAYS | registry.options_of(kernel) if kernel in registry.kernels() else set(SETTINGS)


def as_builtins(settings: dict) -> dict:
    """Return accepted settings as built-in types: sizes of arrays may be NumPy's integers."""
    numbers = {name: int(value) for name, value in settings.items() if isinstance(value, Integral)}
    return settings | numbers | {"causal": bool(settings["causal"]), "descriptors": settings["descriptors"]}


def _group(kernel):
    for prefix, group in {"without_": "without one idea", "hopper_": "Hopper"}.items():
        if kernel.startswith(prefix):
            return group
    return "rungs" if kernel[0] == "r" and kernel[1].isdigit() else "in flashlib"
