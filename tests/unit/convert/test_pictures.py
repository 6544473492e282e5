"""Images for a model: their header, and reducing them to the limits."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from moot.convert.files.copies import fit_image
from moot.convert.files.media_types import Head, head_of
from moot.errors import Refused
from moot.types.model import ImageLimits

FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}


def picture(width: int, height: int, format: str = "PNG", mode: str = "RGB", colour: object = None, **options: object) -> bytes:
    output = io.BytesIO()
    Image.new(mode, (width, height), colour or "red").save(output, format, **options)  # type: ignore[arg-type]
    return output.getvalue()


@pytest.mark.parametrize("format", FORMATS)
@given(width=st.integers(1, 300), height=st.integers(1, 300))
@settings(max_examples=15, deadline=None)
def test_the_header_gives_type_and_size(format: str, width: int, height: int) -> None:
    assert head_of(picture(width, height, format)) == Head(FORMATS[format], width, height)


def test_the_size_of_every_kind_of_webp_is_read() -> None:
    kinds: list[dict[str, Any]] = [{"lossless": True}, {"quality": 50}, {"exif": b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0"}]
    for options in kinds:
        assert head_of(picture(70, 30, "WEBP", **options)) == Head("image/webp", 70, 30)


MAGIC = [b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8", b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF....WEBPVP8X"]


@given(st.binary(max_size=80), st.sampled_from(MAGIC))
def test_a_head_is_read_from_any_bytes_without_a_fault(body: bytes, magic: bytes) -> None:
    head_of(magic + body)


@pytest.mark.parametrize(
    ("limits", "size"),
    [
        (ImageLimits(max_side=100), (100, 50)),
        (ImageLimits(max_pixels=5_000), (100, 50)),
        (ImageLimits(), (400, 200)),
        (ImageLimits(formats=("image/jpeg",)), (400, 200)),
        (ImageLimits(formats=("image/png",), max_side=40), (40, 20)),
    ],
)
@pytest.mark.parametrize("format", [*FORMATS, "BMP", "TIFF"])
def test_a_picture_is_made_to_fit_and_always_the_same(limits: ImageLimits, size: tuple[int, int], format: str) -> None:
    data = picture(400, 200, format)
    made, media_type, *now = fit_image(data, limits)
    assert tuple(now) == size and head_of(made) == Head(media_type, *size)
    assert media_type in limits.formats and len(made) * 4 / 3 <= limits.max_bytes
    fit_image.cache_clear()
    assert fit_image(data, limits)[0] == made


def test_an_image_of_too_many_bytes_is_reduced_until_it_fits() -> None:
    noise = Image.effect_noise((300, 300), 100)
    output = io.BytesIO()
    noise.save(output, "PNG")
    made, _, width, height = fit_image(output.getvalue(), ImageLimits(max_bytes=6_000))
    assert len(made) * 4 / 3 <= 6_000 and 20 < width == height < 300
    with pytest.raises(Refused, match="reduced to 10 bytes"):
        fit_image(output.getvalue(), ImageLimits(max_bytes=10))


def test_transparency_is_preserved() -> None:
    made, media_type, *_ = fit_image(picture(200, 200, mode="RGBA", colour=(0, 0, 0, 0)), ImageLimits(max_side=100))
    assert media_type == "image/png" and Image.open(io.BytesIO(made)).getpixel((5, 5)) == (0, 0, 0, 0)
    made, media_type, *_ = fit_image(picture(200, 200, mode="RGBA", colour=(0, 0, 0, 0)), ImageLimits(formats=("image/jpeg",)))
    assert media_type == "image/jpeg" and Image.open(io.BytesIO(made)).getpixel((5, 5)) == (255, 255, 255)


def test_a_rotated_image_is_turned_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    assert fit_image(picture(400, 200, "JPEG", exif=exif), ImageLimits(max_side=100))[2:] == (50, 100)


def test_a_decompression_bomb_is_rejected_before_decoding() -> None:
    def piece(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    bomb = b"\x89PNG\r\n\x1a\n" + piece(b"IHDR", header) + piece(b"IDAT", zlib.compress(bytes(100_000))) + piece(b"IEND", b"")
    with pytest.raises(Refused, match="60000 x 60000"):
        fit_image(bomb, ImageLimits())


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_damaged_picture_is_refused_or_made_to_fit(data: st.DataObject) -> None:
    sound = bytearray(picture(40, 40, data.draw(st.sampled_from(list(FORMATS)))))
    for _ in range(data.draw(st.integers(1, 6))):
        sound[data.draw(st.integers(0, len(sound) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(sound[: data.draw(st.integers(0, len(sound)))])
    head_of(cut)
    try:
        made, media_type, width, height = fit_image(cut, ImageLimits(max_side=30))
    except Refused:
        return
    assert head_of(made) == Head(media_type, width, height)
