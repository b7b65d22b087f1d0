"""The small language model: `model` writes with a cache or without, `rotary` turns positions, `server` takes requests."""

from flashlib.lm.model import *  # noqa: F403
