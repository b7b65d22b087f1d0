"""A small language model: training, storing, sampling with a cache and without, and a server."""
