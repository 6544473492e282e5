"""Every error that moot raises on purpose, one tree.

MootError                      anything a caller may catch
├── UsageError                 what was asked for cannot be: an unknown name, flag or value                exit 2
│   ├── NotFound               no conversation, run, blob … with that id                                   exit 2
│   └── ConfigError            a configuration that does not parse or does not fit (file, line, column)    exit 2
├── NeedsApproval              a decision is wanted and nobody is there to make it                         exit 3
├── OutputContract             the answer does not fit the schema asked for                                exit 4
├── ProviderError              a model's endpoint refused, failed or sent nonsense                         exit 5
├── LimitReached               steps, money, time, tokens                                                  exit 6
├── Busy                       somebody else is at it: a live run, a held lock                             exit 7
├── Cancelled                  a run was stopped before its end                                        exit 130
├── Refused                    a guard said no: a path, a URL, a command                                   exit 1
└── StoreError                 the database could not do it                                                exit 1
    ├── StoreFull              no room left on the disk; nothing of the failed commit was kept             exit 1
    ├── StoreCorrupt           the file is not a sound database                                            exit 1
    ├── StoreTooNew            written by a newer moot; left untouched                                     exit 2
    └── FenceLost              another owner has taken the run                                             exit 7
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
    """Base of all; `fix` is the next move for the person, one sentence or a command, empty when there is none."""

    exit_code = 1
    code = "error"

    def __init__(self, message: str, *, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def advice(self) -> str:
        """The message with the next move behind it, for places that hold one text."""
        if not self.fix:
            return self.message
        return f"{self.message}{' ' if self.message.endswith(('.', '?', '!')) else '; '}{self.fix}"


class UsageError(MootError):
    exit_code = 2
    code = "usage"


class NotFound(UsageError):
    code = "not_found"


class ConfigError(UsageError):
    code = "config"

    def __init__(self, message: str, *, file: str = "", line: int = 0, column: int = 0, fix: str = "") -> None:
        where = ":".join(str(part) for part in (file, line, column) if part)
        super().__init__(f"{where}: {message}" if where else message, fix=fix)
        self.file = file
        self.line = line
        """From 1; 0 = not known."""
        self.column = column


class NeedsApproval(MootError):
    exit_code = 3
    code = "needs_approval"


class OutputContract(MootError):
    exit_code = 4
    code = "output_contract"


class ProviderError(MootError):
    exit_code = 5
    code = "provider"

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
        """The HTTP status, for the log only: nobody above the provider decides by it."""
        self.retryable = retryable
        self.retry_after = retry_after
        """Seconds the provider asked us to wait; None when it did not say."""
        self.raw = raw
        """The vendor's own bytes, kept in the log as they came (at most 64 KiB)."""


class LimitReached(MootError):
    exit_code = 6
    code = "limit"


class Busy(MootError):
    exit_code = 7
    code = "busy"


class Cancelled(MootError):
    exit_code = 130
    code = "cancelled"


class Refused(MootError):
    code = "refused"


class StoreError(MootError):
    code = "store"


class StoreFull(StoreError):
    code = "store_full"


class StoreCorrupt(StoreError):
    code = "store_corrupt"


class StoreTooNew(StoreError):
    exit_code = 2
    code = "store_too_new"


class FenceLost(StoreError):
    exit_code = 7
    code = "fence_lost"
