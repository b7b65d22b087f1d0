"""Pictures as files: plots as SVG, others as WebP with few colours, a quarter of the size of a notebook's PNG."""

import base64
import hashlib
import io
import re

from PIL import Image

COLOURS = 256
PIXELS = 4 / 3  # in a point
SIZE = {side: re.compile(rf'<svg [^>]*?\b{side}="([\d.]+)pt"') for side in ("width", "height")}


class Pictures:
    """The pictures of a site, each written once to its folder, under a name made from its content."""

    def __init__(self, folder):
        self.folder = folder

    def add_svg(self, text):
        """Write a plot, an SVG; return the name of its file, its width and its height in whole pixels."""
        path = self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.svg"
        self.folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        width, height = (SIZE[side].search(text)[1] for side in ("width", "height"))
        return path.name, round(PIXELS * float(width)), round(PIXELS * float(height))

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
