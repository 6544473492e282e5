"""The exception hierarchy of moot.

MootError                      base class
├── UsageError                 invalid request: an unknown name, option or value                           exit 2
│   ├── NotFound               no conversation, run, blob … with this id                                   exit 2
│   └── ConfigError            invalid configuration (with file, line and column)                          exit 2
├── NeedsApproval              an approval is required and no one can be asked                             exit 3
├── OutputContract             the answer does not match the requested schema                              exit 4
├── ProviderError              a model endpoint rejected the request, failed, or sent an invalid response  exit 5
├── LimitReached               a limit of steps, cost, time or tokens                                      exit 6
├── Busy                       in use elsewhere: a live run, a lock                                        exit 7
├── Cancelled                  the run was cancelled                                                       exit 130
├── Refused                    a path, URL or command is not allowed                                       exit 1
└── StoreError                 the database operation failed                                               exit 1
    ├── StoreFull              the disk is full; the failed commit was rolled back                         exit 1
    ├── StoreCorrupt           the database file is corrupt                                                exit 1
    ├── StoreTooNew            the database was written by a newer version and is not modified             exit 2
    └── FenceLost              another process has taken over the run                                      exit 7
"""

from __future__ import annotations

__all__ = [
    "Busy",
    "Cancelled",
    "ConfigError",
    "FenceLost",
    "LimitReached",
    "MootError",
    "NeedsApproval",
    "NotFound",
    "OutputContract",
    "ProviderError",
    "Refused",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreTooNew",
    "UsageError",
]


class MootError(Exception):
    """Base class of all errors. `fix` is a sentence or a command that tells the user what to do; empty if there is no suggestion."""

    exit_code = 1
    code = "error"

    def __init_subclass__(cls, *, code: str = "", exit_code: int = 0) -> None:
        """Set the codes of an error class. Codes that are not given are inherited."""
        cls.code = code or cls.code
        cls.exit_code = exit_code or cls.exit_code

    def __init__(self, message: str, *, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def advice(self) -> str:
        """Return the message and the fix as one text."""
        return join_fix(self.message, self.fix)


def join_fix(message: str, fix: str) -> str:
    """Join an error message and its fix to one text. The fix may be empty or a command."""
    if not fix:
        return message
    if not message.endswith((".", "?", "!")):
        return f"{message}; {fix}"
    return f"{message} Run '{fix}'." if fix.startswith("moot ") else f"{message} {fix}"


class UsageError(MootError, code="usage", exit_code=2): ...


class NotFound(UsageError, code="not_found"): ...


class ConfigError(UsageError, code="config"):
    def __init__(self, message: str, *, file: str = "", line: int = 0, column: int = 0, fix: str = "") -> None:
        where = ":".join(str(part) for part in (file, line, column) if part)
        super().__init__(f"{where}: {message}" if where else message, fix=fix)
        self.file = file
        self.line = line
        """Line number, starting at 1; 0 if unknown."""
        self.column = column
        self.problems: tuple[tuple[str, str], ...] = ()
        """For each invalid value, its dotted key and what is wrong with it, if known."""


class NeedsApproval(MootError, code="needs_approval", exit_code=3): ...


class OutputContract(MootError, code="output_contract", exit_code=4): ...


class ProviderError(MootError, code="provider", exit_code=5):
    def __init__(
        self,
        message: str,
        *,
        fix: str = "",
        kind: str = "failed",
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        raw: bytes = b"",
    ) -> None:
        super().__init__(message, fix=fix)
        self.kind = kind
        """auth | rate_limit | overloaded | transport | timeout | invalid_request | context_too_long | content | protocol | failed"""
        self.status = status
        """HTTP status, for the log only. Code above the provider must not depend on it."""
        self.retryable = retryable
        self.retry_after = retry_after
        """Seconds to wait before a retry, as requested by the provider. None if the provider did not specify a time."""
        self.raw = raw
        """The vendor's response bytes, stored unchanged in the log (at most 64 KiB)."""


class LimitReached(MootError, code="limit", exit_code=6): ...


class Busy(MootError, code="busy", exit_code=7): ...


class Cancelled(MootError, code="cancelled", exit_code=130): ...


class Refused(MootError, code="refused"): ...


class HostError(MootError, code="host"):
    """Another machine can't be reached, or its responses can't be used."""


class StoreError(MootError, code="store"): ...


class StoreFull(StoreError, code="store_full"): ...


class StoreCorrupt(StoreError, code="store_corrupt"): ...


class StoreTooNew(StoreError, code="store_too_new", exit_code=2): ...


class FenceLost(StoreError, code="fence_lost", exit_code=7): ...
