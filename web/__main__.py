"""Build the site: `python -m web site --repository https://github.com/OWNER/NAME`."""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ["FLASHLIB_PROGRESS"] = "off"  # no card on the site has been answered yet
os.environ.setdefault("MPLBACKEND", "agg")

from web import build
from web.live import parts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where to write the site; an older site there is replaced")
    parser.add_argument("--repository", default="", help="the address of the source, for links")
    parser.add_argument("--chapter", help="only this one, for example 05")
    args = parser.parse_args()
    start = time.perf_counter()
    lost = ""
    try:
        parts.check(parts.folder())
    except parts.Missing as reason:
        lost = str(reason)
    try:
        made = build.build(args.folder, args.repository, [args.chapter] if args.chapter else None, not lost)
    except (OSError, ValueError) as error:
        sys.exit(f"The site was not made: {error}")
    size = sum(path.stat().st_size for path in args.folder.rglob("*") if path.is_file())
    if lost:
        print(f"Without Python in its pages: {lost}.")
    elif lost := parts.no_kernels():
        print(f"Without kernels in its pages: {lost}.")
    print(f"{args.folder}: {len(made)} chapters, {size / 1e6:.1f} MB, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
