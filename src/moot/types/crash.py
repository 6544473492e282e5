"""Named points at which a test can kill the process, to verify that no acknowledged data is lost.

`MOOT_CRASH_AT=<name>` or `<name>:<n>` (the n-th time, from 1) takes effect only together with `MOOT_TESTING=1`. The test suite finds all
names in the source and kills a real process at each: a new commit point needs a new name, and the suite fails if no test reaches a name.
"""

from __future__ import annotations

import os
import signal

_AT, _, _NTH = os.environ.get("MOOT_CRASH_AT", "").partition(":")
_armed = bool(_AT) and os.environ.get("MOOT_TESTING") == "1"
_left = int(_NTH) if _NTH.isdigit() else 1


def point(name: str) -> None:
    """Kill the process with SIGKILL if a test asked for this point; else do nothing."""
    global _left
    if not _armed or name != _AT:
        return
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
