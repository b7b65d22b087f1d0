"""The code of the FlashAttention course, from `exp(x) / sum(exp(x))` to a Triton kernel.

Read it in this order:

    softmax        naive, safe and online softmax of one row; the (m, l[, O_acc]) monoid and its `merge`
    naive          standard attention, S and P written to memory, in three passes; its gradients
    tiled          FlashAttention in NumPy, both loop orders, as a generator of `Step`s; its gradients
    masks          which scores are seen and how they are changed, for any variant; `sink`: attention sinks
    memory, cost   bytes moved: metered by an ndarray subclass, and as closed forms
    gpus           sizes, bandwidth and peaks of several GPUs, each number with its source
    chunked        the same recurrence in plain PyTorch, as in memory-efficient attention
    torch_ref      the same attention on torch tensors (B, H, N, d)
    kernels        Triton: row softmax, FlashAttention-2 forward and backward, as an operation of PyTorch; any mask
    cache          a key/value cache in pages: who owns which page, prefixes shared by content, and its storage
    splits         into how many parts decoding splits the keys of a sequence: a model of the time
    pipeline       warps, barriers and units of a Hopper multiprocessor, as a model that runs
    lm             a small language model: trained with any attention, writing with a cache, serving requests

    types, inputs  shared by all others: `Attention`, `Step`, `Traffic` and the notation; checks of arguments
    learner        a learner's own code: a function sent to another process, a loop over tiles and its true states
    recorded_head  Q, K and V of one head of a real model, for six words
    pictures       still pictures: a canvas, its inks, charts, the order of tiles, the memories of a GPU
    widgets        interactive pictures: the player of `tiled.steps` and the labs, a folder each
    checks         is an answer to an exercise right, and if not, what is the mistake? `checks.merge(my_merge)`
    bench          verified timings: our kernels and PyTorch's, NumPy on a CPU; a GPU's counters
    chapters       the chapters: title, what each needs, its widgets
    language       translations of the texts in widgets, cards and verdicts

`naive`, `tiled`, `torch_ref` and `kernels.forward` have the same function, and the module is the selector:
`attention(Q, K, V, *, causal=False, mask=None, scale=None) -> Attention(O, lse)`. Importing `flashlib` imports
none of them.
"""

import os

if os.environ.get("FLASHLIB_LANGUAGE"):  # otherwise none of it is needed
    from flashlib.language import loading

    loading.begin()
