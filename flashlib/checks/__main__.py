"""Run the notebooks of a folder, and print a table of the verdicts on their exercises.

The notebooks stay as they are. A cell that does not end is interrupted, and a notebook that hangs or whose kernel
dies is one failed row. This runs the code in the notebooks: run it where you would open them.
"""

import argparse
import sys

from flashlib.checks.classroom import class_table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m flashlib.checks", description=__doc__)
    parser.add_argument("folder", help="searched for notebooks, its subfolders too")
    folder = parser.parse_args().folder
    rows = []
    try:
        for some in class_table.run(folder):
            rows += some
            print(f"{some[0].notebook}: done", file=sys.stderr, flush=True)
    except ValueError as error:
        sys.exit(str(error))
    print(class_table.table(rows))


if __name__ == "__main__":
    main()
