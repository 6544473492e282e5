"""A run that came to nothing, as the exception that it is."""

from __future__ import annotations

from moot import errors
from moot.errors import Cancelled, LimitReached, MootError, ProviderError, StoreError
from moot.types.run import Run

_BY_CODE: dict[str, type[MootError]] = {
    kind.code: kind for name in errors.__all__ if issubclass(kind := getattr(errors, name), MootError) and kind is not MootError
}


def failure_of(run: Run) -> MootError | None:
    """What to raise for a run that has ended or stopped; None for a finished one."""
    if run.status == "finished":
        return None
    if run.status == "cancelled":
        return Cancelled(f"the run {run.id!r} was cancelled; what was said so far is kept")
    if run.status == "interrupted":
        return StoreError(f"the run {run.id!r} was interrupted: the process that drove it is gone", fix="take it up with m.resume(…)")
    failure = run.error
    if failure is None:
        return MootError(f"the run {run.id!r} is {run.status}")
    if failure.kind == "deadline":
        return LimitReached(failure.message, fix=failure.fix)
    if failure.kind == "internal":
        return MootError(failure.message)
    kind = _BY_CODE.get(failure.kind)
    if kind is not None and kind is not ProviderError:
        return kind(failure.message, fix=failure.fix)
    return ProviderError(failure.message, fix=failure.fix, kind=failure.kind, retryable=failure.retryable, retry_after=failure.retry_after)
