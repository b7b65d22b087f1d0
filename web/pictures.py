"""Pictures as files: WebP in few colours, a quarter of the PNG that a notebook holds."""

import base64
import hashlib
import io

from PIL import Image

COLOURS = 256


class Pictures:
    """The pictures of a site, each written once to its folder, named after what is in it."""

    def __init__(self, folder):
        self.folder = folder

    def add(self, png):
        """Write a picture, a PNG in base64; return its file's name, its width and its height."""
        content = base64.b64decode(png)
        picture = Image.open(io.BytesIO(content)).convert("RGBA")
        few = picture.quantize(COLOURS, method=Image.Quantize.FASTOCTREE)  # which keeps what is see-through
        path = self.folder / f"{hashlib.sha256(content).hexdigest()[:12]}.webp"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            few.convert("RGBA").save(path, "WEBP", lossless=True)
        return path.name, *picture.size
