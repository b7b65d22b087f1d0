"""Our attention in vLLM: a backend that reads and writes vLLM's pages with our kernels.

    from flashlib.interop import vllm as course
    course.register()   # before LLM(...): in place of the CPU's backend, or of FLASH_ATTN on a GPU
    LLM(model, enforce_eager=True)

    paged_attention  what a backend does with tensors: new keys and values into pages, attention; needs no vLLM
    cpu              vLLM's backend for CPUs, which does that; it was run
    cuda             the same for a GPU, written from the sources of the same version; it was never run

vLLM needs a separate environment: `make vllm` makes one, and shows the same text from vLLM's own backend and from
ours. Tried with vLLM 0.32.0.
"""


def register(device: str = "cpu") -> None:
    """Register our backend in place of vLLM's own: "cpu" or "cuda". Call it before a model is made.

    vLLM ignores the name CUSTOM on CPUs, so there our backend replaces CPU_ATTN. Raises ValueError for other
    devices.
    """
    if device not in ("cpu", "cuda"):
        raise ValueError(f'device is {device!r}; accepted are "cpu" and "cuda"')
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    name = AttentionBackendEnum.CPU_ATTN if device == "cpu" else AttentionBackendEnum.FLASH_ATTN
    register_backend(name, f"flashlib.interop.vllm.{device}.Backend")
