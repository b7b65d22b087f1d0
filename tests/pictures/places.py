"""The positions of words and shapes in a picture."""

from itertools import combinations

from flashlib.pictures.canvas import Picture, length

SHAPES = {  # for each way to draw, the corners of what is drawn
    "box": lambda x, y, width, height, **_: [(x, y), (x + width, y + height)],
    "shade": lambda x, y, width, height, *_: [(x, y), (x + width, y + height)],
    "dots": lambda x, y, width, height: [(x, y), (x + width, y + height)],
    "hatch": lambda points: points,
    "line": lambda points, *_, **__: points,
    "polygon": lambda points, *_, **__: points,
    "matrix": lambda x, y, X, width, height, *_, **__: [
        (x, y),
        (x + width * X.shape[1], y + height * X.shape[0]),
    ],
}


class Places:
    """What was drawn in a Picture.

    words: (left, top, right, bottom, text). corners: (x, y, of what). boxes: (x, y, width, height, fill or edge).
    """

    def __init__(self, monkeypatch):
        self.size, self.words, self.corners, self.boxes = (0, 0), [], [], []
        begin, write = Picture.__init__, Picture.text

        def started(picture, width, height, *words, **more):
            begin(picture, width, height, *words, **more)
            self.size, self.words, self.corners, self.boxes = picture._image.size, [], [], []

        def written(picture, x, y, text, size=12, ink="", align="l", face="", **more):
            wide = length(text, size, face)
            left = x - {"l": 0, "m": 0.5, "r": 1}[align] * wide
            self.words.append((left, y - size / 2, left + wide, y + size / 2, text))
            write(picture, x, y, text, size, *([ink] if ink else []), align=align, face=face, **more)

        monkeypatch.setattr(Picture, "__init__", started)
        monkeypatch.setattr(Picture, "text", written)
        for name, corners in SHAPES.items():
            monkeypatch.setattr(Picture, name, self._followed(name, getattr(Picture, name), corners))

    def _followed(self, name, draw, corners):
        def drawn(picture, *given, **more):
            self.corners += [(x, y, name) for x, y in corners(*given, **more)]
            if name == "box":
                self.boxes.append((*given, more.get("fill") or more.get("edge")))
            return draw(picture, *given, **more)

        return drawn

    def outside(self):
        """Words and corners that are not in the picture; an edge may be a little thick."""
        width, height = self.size
        words = [one for one in self.words if min(one[:2]) < -1 or one[2] > width + 1 or one[3] > height + 1]
        far = [one for one in self.corners if not (-3 <= one[0] <= width + 3 and -3 <= one[1] <= height + 3)]
        return words + far

    def overlapping(self):
        """Pairs of words that overlap."""

        def meet(a, b):
            wide = min(a[2], b[2]) - max(a[0], b[0])
            return wide > 1 and min(a[3], b[3]) - max(a[1], b[1]) > (a[3] - a[1]) / 3

        words = [
            one for one in self.words if any(map(str.isalnum, one[4]))
        ]  # a mark may be at a corner of a number
        return [(a[4], b[4]) for a, b in combinations(words, 2) if meet(a, b)]
