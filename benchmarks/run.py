"""Run every benchmark of this folder, one after the other, each in its own process.

python benchmarks/run.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ORDER = tuple(
    f"{name}.py"
    for name in (
        "start",
        "log",
        "history",
        "picker",
        "raw",
        "segments",
        "stream",
        "server",
        "delegate",
        "waiting",
        "screen",
        "repl",
        "page",
        "sandbox",
        "undo",
    )
)


def main() -> int:
    folder = Path(__file__).parent
    failed = []
    for name in ORDER:
        print(f"\n════ {name}", flush=True)
        # the page is driven by fixtures of the browser tests
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(folder.parent / "tests"), os.environ.get("PYTHONPATH"))))}
        if subprocess.run([sys.executable, str(folder / name)], env=environ, check=False).returncode:
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
