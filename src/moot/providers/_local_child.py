"""The embedded model's own process: llama.cpp behind HTTP on the loopback, for as long as its standard input stays open.

Reads one JSON line of orders, answers one JSON line (`url` or `error`), then serves. It is run as a file and imports nothing of
moot: a native crash in here takes nothing else with it.
"""

import importlib
import json
import os
import sys
from typing import Any, TextIO

# before the native library is loaded: waiting OpenMP threads that spin made generation 4 to 9 times slower on busy cores
os.environ["OMP_WAIT_POLICY"] = "passive"
os.environ["GOMP_SPINCOUNT"] = "0"


def main() -> None:
    """Serves until the parent closes our standard input, by will or by dying."""
    orders: dict[str, Any] = json.loads(sys.stdin.readline())
    answers = _own_output(str(orders["log"]))
    try:
        server = _start(orders)
        answer = {"url": server.listening_address}
    except ImportError as error:
        answer = {"error": "import", "message": str(error)}
    except Exception as error:  # noqa: BLE001  (whatever the native library says is for the parent to judge)
        answer = {"error": "start", "message": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), file=answers, flush=True)
    if "url" in answer:
        sys.stdin.read()
    os._exit(0)  # the server's own shutdown waits for streams whose reader is gone


def _start(orders: dict[str, Any]) -> Any:
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params: Any = xllamacpp.CommonParams()
    params.model.path = str(orders["model"])
    params.model_alias = {str(orders["name"])}
    params.n_ctx = int(orders["context"])
    params.n_parallel = 1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [str(orders["key"])]
    params.cors_origins = ""
    params.ui = False
    params.offline = True
    params.endpoint_slots = False
    params.cache_ram_mib = 0
    params.cache_idle_slots = False
    params.verbosity = 1
    server: Any = xllamacpp.Server(params)
    return server


def _own_output(log: str) -> TextIO:
    """Our one line's way out; everything that native code prints goes to the log."""
    answers = os.fdopen(os.dup(1), "w")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0)
    target = os.open(log, flags, 0o600)
    os.dup2(target, 1)
    os.dup2(target, 2)
    return answers


if __name__ == "__main__":
    main()
