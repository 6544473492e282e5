"""Picks a face."""

import gc
import sys

from moot.plugins import FACES


def main() -> int:
    """The command line; its exit code."""
    arguments = sys.argv[1:]
    spare_collector()
    return int(FACES.load("cli")(arguments))


def spare_collector() -> None:
    """Has the garbage collector look less often; for a process that is moot's own.

    A stream makes thousands of small objects that live as long as their run and form no cycles: with the default thresholds (700, 10,
    10) going over them again and again is a tenth of what a streamed chunk costs.
    """
    gc.set_threshold(50_000, 20, 100)


if __name__ == "__main__":
    sys.exit(main())
