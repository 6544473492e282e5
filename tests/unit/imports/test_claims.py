"""A folder with data of several programs: each format finds its own, and the rest is reported."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from agent_machine import COMING, GIVEN, RECORDED, assemble
from import_stage import stored
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.imports.sources import Source, sources_at

NOTEBOOKS = {"mtm": 1, "mtm-1": 1}
"""Formats whose folder only an editor knows; in a copy they are recognized by content."""


def found(folder: Path, name: str = "") -> tuple[list[Source], Report]:
    report = Report()
    return list(sources_at(folder, name, folder.parent / "moot" / "data", report)), report


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("machine") / "home"
    assemble(home)
    shutil.move(home, away := home.with_name("copied home"))
    return away


@pytest.mark.parametrize("below", ["", "backups/2025/home"])
def test_every_programs_sources_are_found_in_a_copied_home(tmp_path: Path, machine: Path, below: str) -> None:
    folder = tmp_path / "taken along"
    shutil.copytree(machine, folder / below, symlinks=True)
    (folder / "letter.txt").write_text("Dear machine,\n")
    sources, report = found(folder)
    assert [source.problem for source in sources if source.problem] == []
    assert len({source.path for source in sources}) == len(sources), "none is read twice"
    assert {source.format.name for source in sources} == {*COMING, *GIVEN, *NOTEBOOKS}
    counted = Counter(source.format.name for source in sources)
    assert {name: counted[name] for name in ("codex", "gemini", "qwen", "pi", "vibe", "gptme", "aichat", *NOTEBOOKS)} == {
        **{name: COMING[name] for name in ("codex", "gemini", "qwen", "pi", "vibe", "gptme", "aichat")},
        **NOTEBOOKS,
    }
    assert (report.unclaimed, report.strangers[-1]) == (2, str(folder / "letter.txt"))
    assert not any(source.placed for source in sources), "a copy is not where the programs of this machine keep theirs"


def test_sessions_of_several_programs_in_one_folder_are_each_of_its_own_format(tmp_path: Path) -> None:
    for name in ("claude", "pi", "codex", "qwen"):
        for file in (RECORDED / name).rglob("*.jsonl"):
            shutil.copyfile(file, tmp_path / file.name)
    sources, report = found(tmp_path)
    assert {source.format.name for source in sources} == {"claude", "pi", "codex", "qwen"}
    assert report.unclaimed == len(list(tmp_path.iterdir())) - len(sources)
    assert {source.format.name for source in found(tmp_path, "pi")[0]} == {"pi"}


def test_files_laid_out_like_a_programs_own_are_read_by_its_format(tmp_path: Path) -> None:
    good = next(path for path in sorted((RECORDED / "claude" / "projects").rglob("*.jsonl")) if not path.name.startswith("agent-"))
    project = tmp_path / "project"
    project.mkdir()
    shutil.copyfile(good, project / good.name)
    broken = project / "11111111-2222-4333-8444-555555555555.jsonl"
    broken.write_bytes(bytes(200_000))
    sources, report = found(tmp_path)
    assert {source.path: source.format.name for source in sources} == {project / good.name: "claude", broken: "claude"}
    assert report.unclaimed == 0


def test_an_older_database_that_was_migrated_is_not_read(tmp_path: Path, machine: Path) -> None:
    folder = tmp_path / "CherryStudio"
    shutil.copytree(machine / ".config" / "CherryStudio", folder)
    shutil.copyfile(folder / "agents.db", folder / "cherrystudio.sqlite")
    assert [source.path for source in found(tmp_path)[0]] == [folder / "agents.db"]


def test_links_in_a_copied_home_are_not_followed(tmp_path: Path, machine: Path) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / ".claude").symlink_to(machine / ".claude")
    (folder / ".codex").mkdir()
    (folder / ".codex" / "sessions").symlink_to(machine / ".codex" / "sessions")
    assert found(folder)[0] == []


@pytest.mark.anyio
@pytest.mark.parametrize("log", [False, True])
async def test_a_database_behind_a_link_is_read_only_if_the_user_named_the_link(tmp_path: Path, machine: Path, log: bool) -> None:
    away, folder = tmp_path / "away" / "opencode.db", tmp_path / "folder"
    away.parent.mkdir()
    folder.mkdir()
    shutil.copyfile(machine / ".local/share/opencode/opencode.db", away)
    owner = sqlite3.connect(away)
    if log:  # the latest writes are next to it, and it is in use
        owner.execute("PRAGMA journal_mode = WAL")
        owner.execute("UPDATE session SET title = title")
        owner.commit()
    link = folder / "link.db"
    link.symlink_to(away)
    (source,) = found(link)[0]
    assert (source.format.name, source.mark.size >= away.stat().st_size) == ("opencode", True)
    async with stored(tmp_path / "home") as store:
        report = Report()
        await import_sources(store, [source], ImportOptions(), report)
    assert (report.conversations["added"], report.failed) == (COMING["opencode"], [])
    owner.close()
    assert found(folder)[0] == []


def test_files_in_a_programs_location_belong_to_it_even_if_broken(tmp_path: Path) -> None:
    file = tmp_path / ".local/share/opencode/opencode.db"
    file.parent.mkdir(parents=True)
    file.write_bytes(bytes(4096))
    sources, report = found(tmp_path)
    assert ([(source.path, source.format.name) for source in sources], report.unclaimed) == ([(file, "opencode")], 0)
