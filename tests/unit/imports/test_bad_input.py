"""Sources that are broken, hostile or moot's own: one does not affect others, and only foreign regular files are opened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from import_stage import HEAD, ONE, USER, only, source, stored, take
from moot.errors import UsageError
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.imports.sources import sources_at
from talk_format import Talk


@pytest.mark.anyio
async def test_a_bad_line_is_reported_and_does_not_affect_others(tmp_path: Path) -> None:
    file = tmp_path / "a.talk"
    file.write_bytes(HEAD + USER + b"\x00" * 40 + b"\n" + ONE)
    async with stored(tmp_path / "home") as store:
        report = await take(store, file)
        assert (report.counts.added, report.problems, report.faulty) == (2, 1, True)
        assert report.brought[0].notes == ("line 3 contains NUL bytes, typically caused by a power failure",)
        bad = [event for event in await store.log.read((await only(store)).id) if isinstance(event.body, dict) and "problem" in event.body]
        assert [event.raw for event in bad] == [b"\x00" * 40 + b"\n"]


@pytest.mark.anyio
async def test_a_source_with_only_bad_records_is_reported_without_a_conversation(tmp_path: Path) -> None:
    file = tmp_path / "a.talk"
    file.write_bytes(HEAD + b"bad\n" * 3)
    async with stored(tmp_path / "home") as store:
        report = await take(store, file)
        assert [(one.outcome, one.problems) for one in report.brought] == [("empty", 3)]
        assert not (await store.conversations.list()).items


@pytest.mark.anyio
async def test_a_bad_source_does_not_affect_others(tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.talk", tmp_path / "good.talk"
    bad.write_bytes(b"[]\n")
    good.write_bytes(HEAD + USER)

    class Mistake(Exception):
        """A kind that only the format knows."""

    class Broken(Talk):
        def read(self, path: Path) -> Any:
            yield from super().read(good)
            raise Mistake("in a format")

    async with stored(tmp_path / "home") as store:
        report = Report()
        await import_sources(store, [source(bad), source(bad, Broken()), source(good)], ImportOptions(), report)
        assert [failed.problem for failed in report.failed] == [
            f"{str(bad)!r} holds no talk",
            "The format 'talk' failed: Mistake: in a format",
        ]
        assert (report.conversations["added"], report.done) == (1, 3)


def test_moots_own_data_is_rejected_and_only_files_are_opened(tmp_path: Path) -> None:
    data = tmp_path / "home" / "data"
    data.mkdir(parents=True)
    (data / "moot.db").write_bytes(HEAD)
    for own in (data, data / "moot.db"):
        with pytest.raises(UsageError, match="own data folder"):
            list(sources_at(own, "", data))
    folder = tmp_path / "folder"
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to(folder)
    (folder / "link").symlink_to(data / "moot.db")
    assert list(sources_at(folder, "recording", data)) == []
    assert list(sources_at(tmp_path, "", data)) == []
