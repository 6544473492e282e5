"""Picks a face."""

import sys
from importlib.metadata import version

from moot.plugins import FACES


def main() -> int:
    """The command line; its exit code."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["version"]):  # answered before anything heavy is imported
        sys.stdout.write(f"moot {version('moot')}\n")
        return 0
    return int(FACES.load("cli")(arguments))


if __name__ == "__main__":
    sys.exit(main())
