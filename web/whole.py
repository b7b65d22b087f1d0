"""The list of all files of the site, for a reader who keeps the course on a device."""

import gzip
import re

ADDRESS = re.compile(r"static/[\w./-]+\w(?:\?[0-9a-f]{8})?")
PACKED = (".whl", ".zip", ".webp", ".png", ".jpg", ".woff2")  # hosts compress the others
UNNAMED = ("recorded/*.js", "*.woff2", "*.txt")  # files that no page names, or only the last one


def files(folder):
    """Return [address, bytes as sent] of each page in a folder, and of each file that a page may load."""
    pages, static = sorted(folder.glob("*.html")), folder / "static"
    texts = [path.read_text(encoding="utf-8") for path in [*pages, *static.glob("live.js")]]
    named = {address for text in texts for address in ADDRESS.findall(text)} - {"static/preview.jpg"}
    unnamed = [path.relative_to(folder).as_posix() for pattern in UNNAMED for path in static.glob(pattern)]
    addresses = [*(path.name for path in pages), *sorted({*named, *unnamed})]
    return [[one, sent(path)] for one in addresses if (path := folder / one.partition("?")[0]).is_file()]


def sent(path):
    """Return how many bytes a host sends for a file."""
    content = path.read_bytes()
    return len(content) if path.suffix in PACKED else len(gzip.compress(content, 6))
