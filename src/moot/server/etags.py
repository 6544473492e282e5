"""Which state of a thing a caller has seen: ETag, If-Match and If-None-Match (RFC 9110 section 13)."""

from __future__ import annotations

from hashlib import blake2b
from typing import Annotated, TypeAlias

from fastapi import Header, Request, Response
from pydantic import BaseModel

from moot.server.problems import Problem
from moot.types.canonical import dumps

IfMatch: TypeAlias = Annotated[str | None, Header(alias="if-match", max_length=1000)]
"""`if_match: IfMatch = None`, for `check_match`."""


def etag_of(value: BaseModel | object) -> str:
    """The strong tag of a thing as it is sent; the same for the same content."""
    content = value.model_dump_json().encode() if isinstance(value, BaseModel) else dumps(value)
    return f'"{blake2b(content, digest_size=12).hexdigest()}"'


def check_match(if_match: str | None, etag: str) -> None:
    """Raises Problem (412) when the caller has seen another state than the one that stands. Without a header anything goes."""
    if if_match is not None and not _names(if_match, etag, weakly=False):
        raise Problem(412, "it was changed since you have read it", fix="read it again, and send its new ETag", headers={"etag": etag})


def tagged(request: Request, value: BaseModel, *, etag: str = "") -> Response:
    """The thing with its tag (its whole content's without one); 304 without a body when the caller has it already."""
    etag = etag or etag_of(value)
    if (seen := request.headers.get("if-none-match")) is not None and _names(seen, etag, weakly=True):
        return Response(status_code=304, headers={"etag": etag})
    return Response(value.model_dump_json(), media_type="application/json", headers={"etag": etag})


def _names(header: str, etag: str, *, weakly: bool) -> bool:
    named = [each.strip() for each in header.split(",")]
    return "*" in named or any((each.removeprefix("W/") if weakly else each) == etag for each in named)
