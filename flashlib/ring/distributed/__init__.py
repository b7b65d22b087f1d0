"""Attention over ranks of torch.distributed: each holds its part of a sequence; each module is one way to attend.

    ring         K and V go round, hop by hop; nothing as large as the whole sequence is held
    all_gather   K and V of all ranks go to all ranks: simpler, but each rank holds them all
    ulysses      ranks exchange heads for rows: each computes whole rows of some heads
    two_d        both: groups exchange heads for rows, and one rank of each group forms a ring

Each has attention(Q, K, V, *, group=None, layout="zigzag", causal=False, mask=None, scale=None) -> Attention.
All ranks of the group call it, each with its own rows: (B, H, its part of N, d). Gradients come through autograd,
and then all ranks must go backward too.

To see how a ring works, first read docs/zigzag_ring.py: causal, forward and backward, on one screen. Here are

    training      splits and joins a sequence; positions, labels across cuts, the mean of the loss
    memory        the most that a rank holds, in closed form
    call          what every way does around its two passes
    agreements    what the ranks of a group agree on before the first copy; axes: a group and a rank's number in it
    choices       what a call takes by default
    link          copies between ranks; copy_engines, signals: copies that take no multiprocessor
    keys          K and V on their way round; gradients: the backward pass
    local         computes a hop, with on_hopper, on_gpu or on_cpu; of_heads: masks

Source: Liu and others, Ring Attention (2023); Llama Team, The Llama 3 Herd of Models (2024), section 3.3.2, for
all-gather; Jacobs and others, DeepSpeed Ulysses (2023); Fang and Zhao, USP (2024), for both.
"""
