"""Our attention in Hugging Face transformers: an attention and a mask function, registered under one name.

    from flashlib.interop import transformers as course
    course.register()                       # the kernels, as "course"
    course.register("tiles", "tiles")       # tiles in NumPy
    course.register("mine", my_attention)   # a function of your own, called as flashlib.torch_ref.attention is
    model.set_attn_implementation("course")

    register        gives transformers an engine under a name
    standing_in     the same under the name "sdpa", for as long as a `with` lasts: for continuous batching
    attend          an engine as transformers calls it: what it gives is translated, or refused
    engines         the kernels, tiles in NumPy, the reference in torch, or a function of your own
    new_tokens      few new tokens over a cache, which torch.compile traces: a step is one CUDA graph
    dropping        dropout in training: a batch as a pack
    call_mask       the mask of a call: what transformers says is seen, as a mask of flashlib; padding: as a mask
    patterns        which functions of transformers are recognised, so that tiles are skipped
    versions        the versions that were tried
    weights         a small pretrained model that writes text

Nothing is ignored: what an engine does not support is refused with an explanation and what to do instead.
"""

from flashlib.interop.transformers import versions

versions.warn()  # before importing transformers, which may not be installed

from flashlib.interop.transformers.register import register, standing_in  # noqa: E402

__all__ = ["register", "standing_in"]
