"""Books in EPUB, one piece per chapter."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator
from io import BytesIO
from urllib.parse import unquote

from defusedxml.ElementTree import fromstring

from moot.tools.html import to_markdown

_CONTAINER = "META-INF/container.xml"


def read(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the chapters in reading order (EPUB 3.3, section 4.2.6.2) with their numbers."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        container = fromstring(archive.read(_CONTAINER))
        package = next(element.get("full-path", "") for element in container.iter() if element.tag.endswith("}rootfile"))
        root = fromstring(archive.read(package))
        items = {element.get("id"): element.get("href") for element in root.iter() if element.tag.endswith("}item")}
        order = [items.get(element.get("idref")) for element in root.iter() if element.tag.endswith("}itemref")]
        for number, href in enumerate(filter(None, order), 1):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(package), unquote(href.partition("#")[0])))
            yield f"chapter {number}", to_markdown(archive.read(path).decode("utf-8", "replace"))
