"""Attention over ranks of torch.distributed: each has its part of a sequence, and a module is a way to attend.

    ring         K and V go round, hop by hop; nothing of the size of the whole sequence is held
    all_gather   K and V of all ranks come to all: simpler, and holds them all
    ulysses      ranks exchange heads for rows: each computes whole rows of some heads
    two_d        both: groups exchange heads for rows, and one rank of each group forms a ring

Each has attention(Q, K, V, *, group=None, layout="zigzag", causal=False, mask=None, scale=None) -> Attention, for
tensors (B, H, N of this rank, d) of a rank's own rows, which all ranks of the group call alike. Gradients come
through autograd: then all ranks must go backward too.

    training     a sequence split and joined, positions, labels across cuts, the mean of the loss
    memory       what a rank holds at most, in closed form
    call         what every way checks, plans and differentiates
    link         copies between ranks, copy_engines: others; keys: K and V on their way; gradients: the way back
    local        what a rank computes of a hop, by on_gpu or on_cpu; on_hopper, if dQ need not repeat to the bit

Source: Liu and others, Ring Attention (2023); Llama Team, The Llama 3 Herd of Models (2024), section 3.3.2, for
all-gather; Jacobs and others, DeepSpeed Ulysses (2023); Fang and Zhao, USP (2024), for both.
"""
