"""A KV cache in pages: `pages` tracks who owns which page, `storage` holds the numbers."""

from flashlib.cache.pages import OutOfPages, Pages
from flashlib.cache.storage import Cache, bytes_per_token

__all__ = ["Cache", "OutOfPages", "Pages", "bytes_per_token"]
