"""Convert images for models: change their size or format. This is the only module that imports Pillow."""

from __future__ import annotations

import io
import math
import struct
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache

from PIL import Image, ImageOps

from moot.errors import Refused
from moot.types.model import ImageLimits

MOST_PIXELS = 120_000_000
"""Maximum number of pixels of an image to decode. A few kilobytes can expand to gigabytes."""

_READ = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
_QUALITY = 85
_SMALLER = 0.75
_TRIES = 16
_ORIENTATION = 0x0112
_LYING = (5, 6, 7, 8)
"""EXIF orientations that rotate an image by 90 degrees."""

Image.MAX_IMAGE_PIXELS = None  # MOST_PIXELS is checked instead, because Pillow only issues warnings


@lru_cache(maxsize=8)
def fit_image(data: bytes, limits: ImageLimits) -> tuple[bytes, str, int, int]:
    """Convert the image to fit the limits. Return its bytes, media type, width and height.
    The result is always the same for the same image.

    For an animation, the first frame is used.
    Raise Refused if the data is not an image, can't be read, is too large, or can't be made to fit.
    """
    with _opened(data) as opened:
        return _fitted(opened, limits)


def strip_metadata(data: bytes) -> tuple[bytes, str]:
    """Remove metadata such as location, camera, comments and profiles from the image. Return the image and its media type.

    For an animation, the first frame is used. Raise Refused if the data is not an image, can't be read, or is too large.
    """
    with _opened(data) as opened:
        photo = opened.format == "JPEG"
        turned = ImageOps.exif_transpose(opened)
        picture = turned.convert("RGBA" if turned.has_transparency_data else "RGB")
        picture.info.clear()  # comments and profiles would be written back
        return (_saved(picture, "JPEG", quality=_QUALITY), "image/jpeg") if photo else (_saved(picture, "PNG"), "image/png")


@contextmanager
def _opened(data: bytes) -> Generator[Image.Image]:
    try:
        with Image.open(io.BytesIO(data), formats=_READ) as opened:
            width, height = opened.size
            if width * height > MOST_PIXELS:
                raise Refused(f"it has {width} x {height} pixels; the limit is {MOST_PIXELS:,}")
            yield opened
    except (OSError, ValueError, SyntaxError, EOFError, IndexError, struct.error, MemoryError, zlib.error) as error:
        raise Refused(f"it can't be read as an image: {error}") from error


def _fitted(opened: Image.Image, limits: ImageLimits) -> tuple[bytes, str, int, int]:
    width, height = opened.size
    wanted = min(1.0, math.sqrt(limits.max_pixels / (width * height)), limits.max_side / max(width, height))
    whole = (height, width) if opened.getexif().get(_ORIENTATION) in _LYING else (width, height)
    opened.draft("RGB", _times(opened.size, wanted))
    picture = ImageOps.exif_transpose(opened)
    seen = picture.has_transparency_data
    picture = picture.convert("RGBA" if seen else "RGB")
    for attempt in range(_TRIES):
        size = _times(whole, wanted * _SMALLER**attempt)
        smaller = picture
        if picture.size != size:
            smaller = picture.resize(size, Image.Resampling.LANCZOS)  # pyright: ignore[reportUnknownMemberType]  numpy's types are missing
        for media_type, made in _encoded(smaller, limits):
            if 4 * math.ceil(len(made) / 3) <= limits.max_bytes:
                return made, media_type, *size
    raise Refused(f"it can't be reduced to {limits.max_bytes:,} bytes")


def _times(size: tuple[int, int], factor: float) -> tuple[int, int]:
    return max(1, int(size[0] * factor)), max(1, int(size[1] * factor))


def _encoded(picture: Image.Image, limits: ImageLimits) -> list[tuple[str, bytes]]:
    """Return the image in each allowed format, as media type and bytes. PNG comes first if JPEG would lose transparency."""
    made: list[tuple[str, bytes]] = []
    if "image/jpeg" not in limits.formats or picture.mode == "RGBA":
        made.append(("image/png", _saved(picture, "PNG")))
    if "image/jpeg" in limits.formats:
        opaque = picture
        if picture.mode == "RGBA":
            opaque = Image.new("RGB", picture.size, "white")
            opaque.paste(picture, mask=picture.getchannel("A"))
        made.append(("image/jpeg", _saved(opaque, "JPEG", quality=_QUALITY)))
    return [(media_type, data) for media_type, data in made if media_type in limits.formats]


def _saved(picture: Image.Image, format: str, **options: int) -> bytes:
    output = io.BytesIO()
    picture.save(output, format, **options)
    return output.getvalue()
