"""A small language model: how it is trained, stored, and sampled from, with a cache or without, and a server."""
