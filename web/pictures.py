"""Pictures as files: WebP with few colours, a quarter of the size of the PNG in a notebook."""

import base64
import hashlib
import io

from PIL import Image

COLOURS = 256


class Pictures:
    """The pictures of a site, each written once to its folder, under a name made from its content."""

    def __init__(self, folder):
        self.folder = folder

    def add(self, png):
        """Write a picture, a PNG in base64; return the name of its file, its width and its height."""
        content = base64.b64decode(png)
        picture = Image.open(io.BytesIO(content)).convert("RGBA")
        few = picture.quantize(COLOURS, method=Image.Quantize.FASTOCTREE)  # which keeps transparency
        path = self.folder / f"{hashlib.sha256(content).hexdigest()[:12]}.webp"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            few.convert("RGBA").save(path, "WEBP", lossless=True)
        return path.name, *picture.size
