from __future__ import annotations

import asyncio
import dataclasses
import fcntl
import hashlib
import os
import re
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from moot.errors import Busy, ProviderError, Refused, StoreFull, UsageError
from moot.providers.download import THIRD_PARTY, Offer, install, pull
from moot.providers.weights import DEFAULT, MANIFEST, HubFile, Weights, Wheel, Wheels, find, installed_weights, weights_path

pytestmark = pytest.mark.anyio

DATA = bytes(range(256)) * 3000
DEAD = HubFile("Nobody", "http://127.0.0.1:1/file.gguf", official=True)


class Person:
    """The sources that were asked, and what they received."""

    def __init__(self, answer: bool = True) -> None:
        self.answer = answer
        self.offers: list[Offer] = []
        self.progress: list[tuple[int, int]] = []

    async def consent(self, offer: Offer) -> bool:
        self.offers.append(offer)
        return self.answer

    def show(self, done: int, total: int) -> None:
        self.progress.append((done, total))


def weights(*sources: HubFile | Wheels, data: bytes = DATA, name: str = "tiny") -> Weights:
    return Weights(name, "Tiny", len(data), hashlib.sha256(data).hexdigest(), "MIT", sources, 100, "note")


@asynccontextmanager
async def hub(data: bytes = DATA, *, stop_after: int | None = None) -> AsyncIterator[tuple[HubFile, list[str]]]:
    """A hub with one file; it disconnects after `stop_after` bytes."""
    ranges: list[str] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        if request.method == "HEAD":
            return web.Response(headers={"Content-Length": str(len(data))})
        ranges.append(request.headers.get("Range", ""))
        start = int(ranges[-1].removeprefix("bytes=").rstrip("-") or 0)
        response = web.StreamResponse(status=206 if start else 200, headers={"Content-Length": str(len(data) - start)})
        await response.prepare(request)
        if stop_after is not None and not start:
            await response.write(data[:stop_after])
            await asyncio.sleep(0.2)
            assert request.transport is not None
            request.transport.close()
            return response
        await response.write(data[start:])
        return response

    app = web.Application()
    app.router.add_route("*", "/file.gguf", serve)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield HubFile("Maker", f"http://127.0.0.1:{runner.addresses[0][1]}/file.gguf", official=True), ranges
    finally:
        await runner.cleanup()


def wheels_of(folder: Path, pieces: list[bytes]) -> Wheels:
    """Real wheels in a folder that the package client searches."""
    made = []
    for number, piece in enumerate(pieces, 1):
        package, member = f"moot-test-piece{number}", f"moot_test_piece{number}/part.bin"
        info = f"moot_test_piece{number}-1.0.dist-info"
        path = folder / f"moot_test_piece{number}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(member, piece)
            archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
            archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{info}/RECORD", "")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        made.append(Wheel(package, "1.0", digest, member, len(piece), hashlib.sha256(piece).hexdigest()))
    return Wheels("wheels of a test", tuple(made))


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder that the package client searches."""
    folder = tmp_path / "index"
    folder.mkdir()
    for client in ("PIP", "UV"):
        monkeypatch.setenv(f"{client}_NO_INDEX", "1")
        monkeypatch.setenv(f"{client}_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


async def test_the_publishers_file_is_downloaded_verified_and_installed(tmp_path: Path) -> None:
    person = Person()
    async with hub() as (source, _):
        path = await install(weights(source), home=tmp_path, consent=person.consent, progress=person.show)
    assert path == tmp_path / "data" / "models" / "tiny.gguf"
    assert path.read_bytes() == DATA
    assert person.progress[-1] == (len(DATA), len(DATA))
    assert not list(path.parent.glob("*.partial"))


async def test_the_offer_shows_name_size_license_and_source_before_the_download(tmp_path: Path) -> None:
    person = Person(answer=False)
    async with hub() as (source, ranges):
        with pytest.raises(Refused):
            await install(weights(source), home=tmp_path, consent=person.consent, progress=person.show)
        assert ranges == []
    summary = "Model Tiny: 1 MB, published by its maker."
    assert person.offers[0].lines() == [summary]
    assert person.offers[0].lines(verbose=True) == [summary, "License: MIT", f"Source: {source.url} (published by Maker)"]
    assert person.progress == []


async def test_an_interrupted_download_is_resumed(tmp_path: Path) -> None:
    person = Person()
    async with hub(stop_after=100_000) as (source, ranges):
        with pytest.raises(ProviderError, match=r"was interrupted|ended after"):
            await install(weights(source), home=tmp_path, consent=person.consent, progress=person.show)
        kept = (tmp_path / "data" / "models" / "tiny.gguf.partial").stat().st_size
        path = await install(weights(source), home=tmp_path, consent=person.consent, progress=person.show)
    assert 0 < kept <= 100_000
    assert ranges == ["", f"bytes={kept}-"]
    assert person.offers[-1].missing == len(DATA) - kept
    assert path.read_bytes() == DATA


async def test_an_unreachable_hub_falls_back_to_wheels_shown_as_a_third_party_copy(tmp_path: Path, index: Path) -> None:
    person = Person()
    entry = weights(DEAD, wheels_of(index, [DATA[:300_000], DATA[300_000:]]))
    path = await install(entry, home=tmp_path, consent=person.consent, progress=person.show)
    assert path.read_bytes() == DATA
    [offer] = person.offers
    assert offer.lines() == [f"Model Tiny: 1 MB, {THIRD_PARTY}."]
    assert offer.lines(verbose=True)[0].startswith("Could not use http://127.0.0.1:1/file.gguf")
    assert offer.lines(verbose=True)[-1] == "Source: wheels of a test"
    assert sorted(done for done, _ in person.progress) == [done for done, _ in person.progress]


async def test_wheels_resume_after_the_existing_pieces(tmp_path: Path, index: Path) -> None:
    person = Person()
    wheels = wheels_of(index, [DATA[:300_000], DATA[300_000:]])
    (index / "moot_test_piece1-1.0-py3-none-any.whl").unlink()
    partial = tmp_path / "data" / "models" / "tiny.gguf.partial"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(DATA[:300_123])
    path = await install(weights(wheels), home=tmp_path, consent=person.consent, progress=person.show)
    assert path.read_bytes() == DATA


async def test_a_wheel_with_another_hash_is_rejected_by_the_client(tmp_path: Path, index: Path) -> None:
    person = Person()
    wheels = wheels_of(index, [DATA])
    with zipfile.ZipFile(index / "moot_test_piece1-1.0-py3-none-any.whl", "a") as archive:
        archive.writestr("more.py", "raise SystemExit")
    with pytest.raises(ProviderError, match="could not be downloaded"):
        await install(weights(wheels), home=tmp_path, consent=person.consent, progress=person.show)
    assert path_free(tmp_path)


async def test_a_wheel_for_another_platform_is_accepted_if_its_hash_is_known(tmp_path: Path, index: Path) -> None:
    person = Person()
    wheels = wheels_of(index, [DATA])
    (wheel,) = wheels.wheels
    moved = Wheels(wheels.words, (dataclasses.replace(wheel, wheel_sha256="0" * 64, elsewhere=("1" * 64, wheel.wheel_sha256)),))
    path = await install(weights(moved), home=tmp_path, consent=person.consent, progress=person.show)
    assert path.read_bytes() == DATA


async def test_a_piece_with_the_wrong_hash_is_not_appended(tmp_path: Path, index: Path) -> None:
    person = Person()
    wheels = wheels_of(index, [DATA])
    wrong = Wheels(wheels.words, (dataclasses.replace(wheels.wheels[0], sha256="0" * 64),))
    with pytest.raises(ProviderError, match="has the wrong hash"):
        await install(weights(wrong), home=tmp_path, consent=person.consent, progress=person.show)
    assert path_free(tmp_path)


async def test_a_file_with_the_wrong_hash_is_discarded(tmp_path: Path) -> None:
    person = Person()
    other = DATA[:-1] + b"x"
    async with hub(other) as (source, _):
        with pytest.raises(ProviderError, match="sha256"):
            await install(weights(source), home=tmp_path, consent=person.consent, progress=person.show)
    assert path_free(tmp_path)
    assert not (tmp_path / "data" / "models" / "tiny.gguf.partial").exists()


async def test_after_a_bad_source_the_next_one_is_used(tmp_path: Path) -> None:
    person = Person()
    async with hub(DATA[:-1] + b"x") as (bad, _), hub() as (good, _):
        path = await install(weights(bad, good), home=tmp_path, consent=person.consent, progress=person.show)
    assert path.read_bytes() == DATA
    assert len(person.offers) == 2


async def test_a_local_file_can_be_the_source(tmp_path: Path) -> None:
    person = Person()
    file = tmp_path / "mine.gguf"
    file.write_bytes(DATA)
    path = await install(weights(DEAD), home=tmp_path, consent=person.consent, progress=person.show, source=file)
    assert path.read_bytes() == DATA
    with pytest.raises(ProviderError, match=r"nowhere\.gguf"):
        gone = tmp_path / "nowhere.gguf"
        await install(weights(DEAD, name="b"), home=tmp_path, consent=person.consent, progress=person.show, source=gone)


async def test_if_all_sources_fail_each_reason_is_shown(tmp_path: Path, index: Path) -> None:
    person = Person()
    wheels = wheels_of(index, [DATA])
    for wheel in index.glob("*.whl"):
        wheel.unlink()
    with pytest.raises(ProviderError) as caught:
        await install(weights(DEAD, wheels), home=tmp_path, consent=person.consent, progress=person.show)
    assert "127.0.0.1:1 can't be reached" in caught.value.message
    assert "moot-test-piece1 1.0 could not be downloaded" in caught.value.message
    assert "--from FILE" in caught.value.fix


async def test_without_disk_space_nothing_is_asked_or_downloaded(tmp_path: Path) -> None:
    person = Person()
    huge = Weights("huge", "Huge", 1 << 60, "0" * 64, "MIT", (DEAD,), 100, "note")
    with pytest.raises(StoreFull, match="are free"):
        await install(huge, home=tmp_path, consent=person.consent, progress=person.show)
    assert person.offers == []


async def test_two_processes_do_not_download_the_same_file_concurrently(tmp_path: Path) -> None:
    person = Person()
    partial = tmp_path / "data" / "models" / "tiny.gguf.partial"
    partial.parent.mkdir(parents=True)
    with partial.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(Busy):
            await install(weights(DEAD), home=tmp_path, consent=person.consent, progress=person.show)


async def test_a_home_that_is_not_a_folder_is_reported(tmp_path: Path) -> None:
    person = Person()
    (tmp_path / "data").write_text("in the way")
    with pytest.raises(Exception, match="Can't write to"):
        await install(weights(DEAD), home=tmp_path, consent=person.consent, progress=person.show)


async def test_an_installed_file_is_not_downloaded_again(tmp_path: Path) -> None:
    entry = find(DEFAULT)
    path = tmp_path / "data" / "models" / entry.file
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(entry.size)
    person = Person()
    assert await pull(DEFAULT, home=tmp_path, consent=person.consent, progress=person.show) == path
    assert person.offers == []
    assert installed_weights(tmp_path) == [entry]
    path.write_bytes(b"half")
    assert weights_path(DEFAULT, tmp_path) is None


def test_an_unknown_name_is_reported_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"qwen2\.5-coder-0\.5b, .*smollm2-135m"):
        find("gpt-5")


@pytest.mark.parametrize("name", MANIFEST)
def test_the_pieces_of_an_entry_add_up_to_its_file(name: str) -> None:
    entry = MANIFEST[name]
    assert isinstance(entry.sources[0], HubFile)
    assert all(len(hash) == 64 for hash in [entry.sha256, *(wheel.sha256 for wheel in _wheels(entry))])
    assert sum(wheel.size for wheel in _wheels(entry)) in (entry.size, 0)


def test_larger_models_are_official_files_with_a_fixed_revision_and_an_open_license() -> None:
    larger = [entry for entry in MANIFEST.values() if entry.size > 1_000_000_000]
    assert len(larger) == 3
    for entry in larger:
        [source] = entry.sources
        assert isinstance(source, HubFile) and source.official
        assert re.search(r"/resolve/[0-9a-f]{40}/[^/]+\.gguf$", source.url)
        assert entry.license == "Apache-2.0"
        assert entry.size * 1.2 < entry.memory < entry.size * 2


def _wheels(entry: Weights) -> list[Wheel]:
    return [wheel for source in entry.sources if isinstance(source, Wheels) for wheel in source.wheels]


def path_free(home: Path) -> bool:
    return not (home / "data" / "models" / "tiny.gguf").exists()
