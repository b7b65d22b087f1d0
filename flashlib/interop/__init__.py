"""Our attention where others call it: adapters, a module for each package, and no algorithm.

    flash_attn      the functions of the package flash_attn (FlashAttention 2), and a module that stands in for it
    transformers    an attention of Hugging Face's models and their masks, with any engine
    vllm            a backend that reads and writes vLLM's pages
    deepspeed       the attention of a rank in DeepSpeed's Ulysses
    weights         a small pretrained model, to try them with
    families        small models of eight families, which need different things of an attention

Each takes the package's own arguments and layouts. What it does not support it refuses with an explanation, before
any work.
"""
