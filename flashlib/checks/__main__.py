"""Check the answers in the notebooks of a folder, and print a table of the verdicts.

The notebooks are neither changed nor executed. Each answer is run with the functions, imports and constants that
it names, in a separate process with limits. It is still other people's code: run it where you would open the
notebooks. Files that it writes outside of its own folder are neither counted nor removed.

The table helps a teacher to see who needs help. It is not an examination: an answer can forge its verdict on
purpose.
"""

import argparse
import io
import sys

from flashlib.checks.classroom import class_table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.checks", description=__doc__)
    parser.add_argument("folder", help="searched for notebooks, including its subfolders")
    folder = parser.parse_args().folder
    rows = []
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        for some in class_table.run(folder):
            rows += some
            print(f"{some[0].notebook}: done", file=sys.stderr, flush=True)
    except ValueError as error:
        sys.exit(str(error))
    print(class_table.table(rows))


if __name__ == "__main__":
    main()
