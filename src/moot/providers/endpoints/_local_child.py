"""The child process of the embedded model, which serves llama.cpp over HTTP on the loopback interface until standard input is closed.

It reads one JSON line with its options, answers with one JSON line (`url` or `error`), and then serves requests. It is a separate process,
so that a crash of native code affects nothing else, and it imports nothing from moot.
"""

import importlib
import json
import os
import sys
from typing import Any, TextIO

# set before the native library is loaded: waiting OpenMP threads that spin make generation 4 to 9 times slower on busy cores
os.environ["OMP_WAIT_POLICY"] = "passive"
os.environ["GOMP_SPINCOUNT"] = "0"


def main() -> None:
    """Serve until the parent process closes standard input or dies."""
    options: dict[str, Any] = json.loads(sys.stdin.readline())
    answers = _own_output(str(options["log"]))
    try:
        server = _start(options)
        answer = {"url": server.listening_address}
    except ImportError as error:
        answer = {"error": "import", "message": str(error)}
    except Exception as error:  # noqa: BLE001  (any error of the native library is reported to the parent)
        answer = {"error": "start", "message": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), file=answers, flush=True)
    if "url" in answer:
        sys.stdin.read()
    os._exit(0)  # the server's own shutdown would wait for streams whose client is gone


def _start(options: dict[str, Any]) -> Any:
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params: Any = xllamacpp.CommonParams()
    params.model.path = str(options["model"])
    params.model_alias = {str(options["name"])}
    params.n_ctx = int(options["context"])
    params.n_parallel = 1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [str(options["key"])]
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
    """Redirect all output of native code to the log file. Return a stream to the original stdout, for the answer."""
    answers = os.fdopen(os.dup(1), "w")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0)
    target = os.open(log, flags, 0o600)
    os.dup2(target, 1)
    os.dup2(target, 2)
    return answers


if __name__ == "__main__":
    main()
