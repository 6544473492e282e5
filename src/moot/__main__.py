"""Entry point of the `moot` program."""

import gc
import sys

from moot.plugins import FACES


def main() -> int:
    """Run the command line and return its exit code."""
    arguments = sys.argv[1:]
    relax_garbage_collector()
    return int(FACES.load("cli")(arguments))


def relax_garbage_collector() -> None:
    """Raise the garbage collector's thresholds. Only for moot's own processes.

    A stream creates thousands of small acyclic objects that live as long as their run. With the default thresholds (700, 10, 10),
    traversing them again and again takes 10% of the time spent on each chunk.
    """
    gc.set_threshold(50_000, 20, 100)


if __name__ == "__main__":
    sys.exit(main())
