"""Documents are indexed once, refreshed when they change, and found by words and meaning with their place."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from conformance.ownership import Lengths
from document_files import pdf
from moot.config.settings import Settings
from moot.engine import Engine, open_engine
from moot.errors import NotFound, Refused, UsageError
from moot.knowledge.library import CHUNK_CHARACTERS, CHUNK_WORDS, Library, Refreshed, chunks_of
from moot.store.database.connection import connect
from moot.types.conversation import Project
from moot.types.knowledge import Chunk, KnowledgeScope, Section, Source
from moot.types.maintenance import Secret

pytestmark = pytest.mark.anyio

ALL = KnowledgeScope()


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[Engine, None]:
    async with open_engine(Settings(tmp_path / "home")) as opened:
        yield opened


@pytest.fixture
def library(engine: Engine) -> Library:
    return engine.runtime.library("local")


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    folder = tmp_path / "papers"
    (folder / "sub").mkdir(parents=True)
    (folder / "tea.md").write_text("# Tea\n\nfirst\n\n## Green\n\nWater at 80 degrees, 東京都の天気.\n")
    (folder / "sub" / "bees.pdf").write_bytes(pdf(["Introduction", "The queen lays two thousand eggs"]))
    return folder


async def found_in(library: Library, query: str, scope: KnowledgeScope = ALL) -> list[tuple[str, str]]:
    return [(Path(hit.path).name, hit.place) for hit in await library.search(query, scope)]


async def test_hits_cite_file_and_place(library: Library, papers: Path):
    source = await library.add(papers)
    assert await library.refresh(source) == Refreshed(indexed=2)
    assert await found_in(library, "eggs") == [("bees.pdf", "page 2")]
    assert await found_in(library, "degrees") == [("tea.md", "line 5")]
    assert await found_in(library, "天気") == [("tea.md", "line 5")]
    assert await found_in(library, "bees queen") == [("bees.pdf", "page 2")]  # the name of the file counts
    assert await found_in(library, 'nothing" OR NEAR(') == []
    with pytest.raises(UsageError):
        await library.search("  ", ALL)


async def test_only_changed_files_are_opened_again(library: Library, papers: Path):
    source = await library.add(papers)
    await library.refresh(source)
    tea, status = papers / "tea.md", (papers / "tea.md").stat()
    tea.write_text(tea.read_text().replace("degrees", "bananas"))
    os.utime(tea, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert await library.refresh(source) == Refreshed(unchanged=2)  # same size and time: not opened
    os.utime(tea)
    assert await library.refresh(source) == Refreshed(indexed=1, unchanged=1)
    assert await found_in(library, "degrees") == [] and await found_in(library, "bananas") == [("tea.md", "line 5")]
    os.utime(tea, ns=(1, 1))
    assert await library.refresh(source) == Refreshed(unchanged=2)  # same content


async def test_removed_files_disappear_and_new_ones_are_found_by_the_next_search(library: Library, papers: Path):
    await library.add(papers)
    assert await found_in(library, "eggs") == [("bees.pdf", "page 2")]
    (papers / "sub" / "bees.pdf").unlink()
    (papers / "wasps.txt").write_text("Wasps lay eggs too.")
    assert await found_in(library, "eggs") == [("wasps.txt", "line 1")]


async def test_documents_that_cannot_be_read_are_listed_with_the_reason(engine: Engine, library: Library, papers: Path):
    (papers / "bad.pdf").write_bytes(b"%PDF-1.4 nonsense")
    (papers / "program").write_bytes(b"\x7fELF\0\0")
    source = await library.add(papers)
    assert await library.refresh(source) == Refreshed(indexed=2, failed=2)
    problems = {Path(each.path).name: each.problem for each in await engine.store.knowledge.documents(source.id)}
    assert "can't be read" in problems["bad.pdf"] and "neither text nor" in problems["program"] and not problems["tea.md"]
    assert await library.refresh(source) == Refreshed(unchanged=4)
    assert await library.refresh(source, again=True) == Refreshed(unchanged=2, failed=2)
    (listed,) = await engine.store.knowledge.sources()
    assert (listed.documents, listed.failed, listed.chunks) == (4, 2, 4)


async def test_links_hidden_files_and_special_files_are_skipped(library: Library, papers: Path, tmp_path: Path):
    (tmp_path / "secret.txt").write_text("heliotrope")
    (papers / "link.txt").symlink_to(tmp_path / "secret.txt")
    (papers / "folder").symlink_to(tmp_path)
    (papers / ".env").write_text("heliotrope")
    os.mkfifo(papers / "pipe")
    assert await library.refresh(await library.add(papers)) == Refreshed(indexed=2)
    assert await found_in(library, "heliotrope") == []


async def test_what_cannot_be_indexed_is_named(
    engine: Engine, library: Library, papers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def problems(source: Source) -> dict[str, str]:
        await library.refresh(source)
        return {Path(each.path).name: each.problem for each in await engine.store.knowledge.documents(source.id) if each.problem}

    (papers / os.fsdecode(b"caf\xe9.txt")).write_text("coffee")
    (papers / "empty.pdf").write_bytes(pdf([""]))
    (papers / "deep" / "er").mkdir(parents=True)
    (papers / "deep" / "er" / "x.txt").write_text("below")
    monkeypatch.setattr("moot.knowledge.library.DEPTH", 1)
    found = await problems(source := await library.add(papers))
    assert list(found) == ["caf\ufffd.txt", "deep", "empty.pdf"]
    assert "not valid UTF-8" in found["caf\ufffd.txt"] and "deeper than 1 " in found["deep"] and "no text" in found["empty.pdf"]
    monkeypatch.setattr("moot.knowledge.library.DEPTH", 60)
    assert await found_in(library, "below") == [("x.txt", "line 1")] and "deep" not in await problems(source)
    monkeypatch.setattr("moot.knowledge.library.FILES", 1)
    assert "more than 1 files" in (await problems(source))["papers"]
    monkeypatch.setattr("moot.knowledge.library.MAX_CHUNKS", 1)
    (tmp_path / "long.txt").write_text("# One\nx\n# Two\ny\n")
    long = await library.add(tmp_path / "long.txt")
    assert "only its first" in (await problems(long))["long.txt"]
    (tmp_path / "long.txt").unlink()
    assert await problems(long) == {"long.txt": "It can't be read: No such file or directory."}
    assert await found_in(library, "x") == []


async def test_a_folder_that_is_swapped_for_a_link_is_not_followed(library: Library, papers: Path, tmp_path: Path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "bees.pdf").write_bytes(pdf(["heliotrope"]))

    def swap(done: int, _: int) -> None:
        if done == 1:
            (papers / "sub").rename(papers / "kept")
            (papers / "sub").symlink_to(secret)

    assert await library.refresh(await library.add(papers), swap) == Refreshed(indexed=1, failed=1)
    assert await found_in(library, "heliotrope") == []


async def test_a_project_has_documents_of_its_own(engine: Engine, library: Library, papers: Path, tmp_path: Path):
    await library.refresh(await library.add(papers, project="shop"))
    knowledge = tmp_path / "root" / "knowledge"
    knowledge.mkdir(parents=True)
    (knowledge / "notes.txt").write_text("In the folder: eggs.")
    assert await found_in(library, "eggs") == []
    assert await found_in(library, "eggs", KnowledgeScope("shop")) == [("bees.pdf", "page 2")]
    assert await found_in(library, "eggs", KnowledgeScope("other", (str(knowledge),))) == [("notes.txt", "line 1")]
    assert await found_in(library, "eggs", KnowledgeScope("other")) == []


async def test_uploads_are_replaced_by_name_and_kept_by_a_refresh(engine: Engine, library: Library):
    await library.upload("a.txt", b"first version")
    source = await library.upload("a.txt", b"second version")
    await library.refresh(source)
    assert await found_in(library, "version") == [("a.txt", "line 1")]
    assert await found_in(library, "first") == []
    await engine.store.knowledge.remove(source.id)
    assert await found_in(library, "version") == []
    with pytest.raises(NotFound):
        await engine.store.knowledge.remove(source.id)


async def test_results_of_both_searches_are_merged_by_rank(engine: Engine, library: Library):
    for name, text in {"short.txt": "tea", "long.txt": "x" * 50, "words.txt": "about tea " * 9}.items():
        await library.upload(name, text.encode())
    index, model = engine.store.knowledge, Lengths()
    done, total = await index.embed(model, seconds=20)
    assert done == total == 3
    hits = await index.search("tea", ALL, limit=5, embedder=model)
    assert {hit.path: hit.by for hit in hits} == {
        "short.txt": ("words", "meaning"),
        "words.txt": ("words", "meaning"),
        "long.txt": ("meaning",),
    }
    assert [hit.path for hit in hits][-1] == "long.txt"
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


async def test_a_redaction_removes_text_words_and_vectors(engine: Engine, library: Library, tmp_path: Path):
    await library.upload("a.txt", b"the password is heliotrope, the tea is green")
    await engine.store.knowledge.embed(Lengths(), seconds=20)
    await engine.store.erasure.redact(Secret(strings=("heliotrope",)))
    assert await found_in(library, "heliotrope") == []
    assert await found_in(library, "green") == [("a.txt", "line 1")]
    with connect(tmp_path / "home" / "data" / "moot.db") as connection:
        assert connection.execute("SELECT count(*) FROM knowledge_vector").fetchone() == (0,)


def rows_of(home: Path) -> dict[str, int]:
    tables = ("knowledge_source", "knowledge_document", "knowledge_chunk", "knowledge_vector", "knowledge_words_docsize")
    with connect(home / "data" / "moot.db") as connection:
        return {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}


async def test_removing_a_source_removes_its_rows_words_and_vectors(engine: Engine, library: Library, papers: Path, tmp_path: Path):
    source = await library.add(papers)
    await library.refresh(source)
    await library.upload("a.txt", b"kept")
    await engine.store.knowledge.embed(Lengths(), seconds=20)
    assert set(rows_of(tmp_path / "home").values()) == {2, 3, 5}
    (papers / "tea.md").unlink()
    await library.refresh(source)  # a missing file
    assert rows_of(tmp_path / "home")["knowledge_vector"] == rows_of(tmp_path / "home")["knowledge_words_docsize"] == 3
    await engine.store.knowledge.remove(source.id)
    assert set(rows_of(tmp_path / "home").values()) == {1}
    assert await found_in(library, "kept") == [("a.txt", "line 1")]


async def test_a_file_in_two_sources_is_found_once(library: Library, papers: Path):
    for path in (papers, papers / "sub", papers / "tea.md"):
        await library.refresh(await library.add(path))
    assert await found_in(library, "eggs") == [("bees.pdf", "page 2")]
    assert await found_in(library, "degrees") == [("tea.md", "line 5")]


async def test_files_of_the_home_and_special_files_are_not_added(library: Library, tmp_path: Path):
    (tmp_path / "home" / "config.yaml").write_text("providers: {}")
    for path in (tmp_path / "home", tmp_path / "home" / "config.yaml", tmp_path / "home" / "state"):
        path.mkdir(exist_ok=True) if not path.suffix else None
        with pytest.raises(Refused, match="moot's own data"):
            await library.add(path)
    with pytest.raises(UsageError, match="neither a file nor a folder"):
        await library.add(Path("/dev/null"))


async def test_sources_of_a_removed_project_go_to_the_default_one(engine: Engine, library: Library, papers: Path, tmp_path: Path):
    projects = engine.store.of("local").projects
    shop = await projects.create(Project("shop", "shop"))
    for project in (shop.id, "default"):
        await library.refresh(await library.add(papers, project=project))
    await library.add(papers / "tea.md", project=shop.id)
    await projects.remove(shop.id)
    sources = await engine.store.knowledge.sources()
    assert [(Path(source.path).name, source.project) for source in sources] == [("papers", "default"), ("tea.md", "default")]
    assert rows_of(tmp_path / "home")["knowledge_document"] == 2


def test_chunks_follow_headings_and_paragraphs():
    words = " ".join(["word"] * (CHUNK_WORDS // 2))
    text = f"intro\n# One\n{words}\n\n{words}\n\n{words}\n## Two\nend"
    chunks = chunks_of([Section("", text)], lines=True)
    assert [(chunk.place, chunk.heading) for chunk in chunks] == [("line 1", ""), ("line 2", "One"), ("line 7", "One"), ("line 8", "Two")]
    assert chunks_of([Section("page 3", "text")], lines=False) == [Chunk("page 3", "", "text")]
    assert chunks_of([Section("", " \n\n ")], lines=True) == []


def test_texts_without_paragraphs_are_cut():
    chunks = chunks_of([Section("", "x" * (CHUNK_CHARACTERS * 3))], lines=True)
    assert len(chunks) == 3 and "".join(chunk.text for chunk in chunks) == "x" * (CHUNK_CHARACTERS * 3)
