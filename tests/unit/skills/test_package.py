"""Packages of skills: hostile archives are refused as a whole, and what is installed is what was shown."""

from __future__ import annotations

import gzip
import io
import stat
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from lanes import missing
from moot.config.plugins.content import BYTES, FILES, digest_of, digest_of_files
from moot.errors import MootError, NotFound, Refused, UsageError
from moot.skills.decisions import set_scripts, set_use
from moot.skills.installation import candidates, changes, chosen, install, read_source, remove
from moot.skills.library import find_skill, find_skills
from moot.skills.package import read_archive, read_commit, read_folder, skills_in
from moot.types.skill import SKILL_FILE

pytestmark = pytest.mark.anyio

TEXT = "---\nname: pdf\ndescription: d\n---\nDo it.\n"


def zipped(*files: tuple[str, str], mode: int = 0o644) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, text)
    return data.getvalue()


def tarred(*members: tuple[tarfile.TarInfo, bytes], mode: str = "w:gz") -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode) as archive:  # type: ignore[call-overload]
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return data.getvalue()


def info(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.mode = kind, target, mode
    return member


GOOD = ("pdf/SKILL.md", TEXT)
NAMES = [
    "../evil", "pdf/../../evil", "/etc/evil", "C:/evil", "c:evil", "pdf\\..\\evil", "pdf//evil", "pdf/./evil", "pdf/a\nb",
    "pdf/skill.md", "pdf/SKILL.md", "pdf/SKILL.md/below", "/".join("d" * 20),
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_with_one_unsafe_name_is_refused_as_a_whole(name: str) -> None:
    for archive in (zipped(GOOD, (name, "x")), zipped((name, "x"), GOOD), tarred((info(GOOD[0]), TEXT.encode()), (info(name), b"x"))):
        with pytest.raises(Refused):
            read_archive(archive)


@pytest.mark.parametrize("mode", [stat.S_IFLNK | 0o777, stat.S_IFCHR | 0o600, stat.S_IFIFO | 0o600, stat.S_IFREG | 0o4755, 0o2755])
def test_links_devices_and_setuid_files_in_a_zip_are_refused(mode: int) -> None:
    with pytest.raises(Refused):
        read_archive(zipped(GOOD, ("pdf/x", "/etc/passwd"), mode=mode))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE])
def test_links_and_devices_in_a_tar_are_refused(kind: bytes) -> None:
    with pytest.raises(Refused):
        read_archive(tarred((info("pdf", kind, "/tmp"), b""), (info("pdf/SKILL.md"), TEXT.encode())))
    with pytest.raises(Refused):
        read_archive(tarred((info(GOOD[0]), TEXT.encode()), (info("pdf/x", mode=0o4755), b"x")))


def test_bombs_are_refused_before_they_expand() -> None:
    zeros = "\0" * (BYTES + 1)
    with pytest.raises(Refused, match="expands to more"):
        read_archive(zipped(GOOD, ("pdf/zeros", zeros)))
    with pytest.raises(Refused, match="expands to more"):
        read_archive(gzip.compress(tarred((info("pdf/zeros"), b"\0" * (BYTES + (9 << 20))), mode="w")))
    many = zipped(GOOD, *((f"pdf/{number}", "") for number in range(FILES + 1)))
    with pytest.raises(Refused, match="more than"):
        read_archive(many)


def test_a_zip_with_false_sizes_or_encryption_or_damage_is_refused() -> None:
    data = bytearray(zipped(GOOD, ("pdf/zeros", "\0" * 1000)))
    at = data.rindex(b"PK\x01\x02") + 24
    data[at : at + 4] = (5).to_bytes(4, "little")  # the size in the directory
    with pytest.raises(Refused):
        read_archive(bytes(data))
    flagged = bytearray(zipped(GOOD))
    flagged[flagged.rindex(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(Refused, match="encrypted"):
        read_archive(bytes(flagged))
    for broken in (b"", b"PK\x03\x04", b"\x1f\x8b\x08", zipped(GOOD)[:-30], b"x" * 600):
        with pytest.raises(MootError):
            candidates(read_archive(broken), "", {})


def test_skills_are_found_at_the_top_and_in_folders() -> None:
    assert list(skills_in(read_archive(zipped((SKILL_FILE, TEXT), ("a.md", "x"))))) == ["pdf"]
    assert list(skills_in(read_archive(zipped(("x-main/skills/pdf/SKILL.md", TEXT), ("x-main/skills/b/SKILL.md", TEXT))))) == ["b", "pdf"]
    nested = skills_in(read_archive(zipped(GOOD, ("pdf/examples/other/SKILL.md", TEXT))))
    assert list(nested) == ["pdf"] and "examples/other/SKILL.md" in nested["pdf"]
    with pytest.raises(Refused, match="Two skills"):
        skills_in(read_archive(zipped(("a/pdf/SKILL.md", TEXT), ("b/pdf/SKILL.md", TEXT))))
    with pytest.raises(NotFound):
        skills_in(read_archive(zipped(("README.md", "x"))))


async def test_what_is_installed_is_pinned_and_an_update_asks_about_scripts_again(tmp_path: Path) -> None:
    home, source = tmp_path / "home", tmp_path / "pdf"
    (source / "scripts").mkdir(parents=True)
    (source / SKILL_FILE).write_text(TEXT)
    (source / "scripts/go.sh").write_text("true")
    (source / "scripts/go.sh").chmod(0o755)
    (found,) = await read_source(str(source), tmp_path)
    folder = install(home, found)
    assert digest_of(folder) == found.digest == digest_of_files(read_folder(source)) == find_skill(home, "pdf").decision.digest
    with pytest.raises(UsageError, match="already exists"):
        install(home, found)
    set_use(home, find_skill(home, "pdf"), "enabled")
    set_scripts(home, find_skill(home, "pdf"), "allow")
    (source / "scripts/go.sh").write_text("false")
    (source / "new.md").write_text("x")
    (found,) = await read_source(str(source), tmp_path)
    assert changes(find_skill(home, "pdf"), found).changed == ("scripts/go.sh",)
    install(home, found, update=True)
    after = find_skill(home, "pdf")
    assert (after.status, after.decision.scripts, (folder / "new.md").exists()) == ("enabled", "ask", True)
    assert [path.name for path in folder.parent.iterdir() if path.is_dir()] == ["pdf"]
    remove(home, after)
    assert find_skills(home) == [] and not folder.exists()


async def test_a_skill_with_mistakes_or_hidden_text_is_not_installed(tmp_path: Path) -> None:
    for name, text in (("other", TEXT), ("pdf", TEXT + "a\u200bb"), ("pdf", "no front matter")):
        (found,) = candidates(read_archive(zipped((f"{name}/SKILL.md", text))), "", {})
        with pytest.raises(Refused, match="has a mistake"):
            install(tmp_path / "home", found)
    (found,) = candidates(read_archive(zipped(GOOD, ("pdf/references/a.md", "x\u202ey"))), "", {})
    with pytest.raises(Refused, match=r"references/a\.md:1"):
        install(tmp_path / "home", found)
    assert not (tmp_path / "home").exists()


async def test_several_skills_must_be_chosen_by_name() -> None:
    found = candidates(read_archive(zipped(GOOD, ("b/SKILL.md", TEXT.replace("pdf", "b")))), "", {})
    with pytest.raises(UsageError, match="contains 2 skills"):
        chosen(found, ())
    assert [candidate.name for candidate in chosen(found, ("pdf",))] == ["pdf"]


@pytest.mark.slow
async def test_a_pinned_commit_is_installed_without_running_anything_of_the_repository(tmp_path: Path) -> None:
    repository = tmp_path / "repo"
    (repository / "skills/pdf").mkdir(parents=True)
    (repository / "skills/pdf" / SKILL_FILE).write_text(TEXT)
    (repository / ".gitattributes").write_text("* filter=evil export-subst\n")
    (repository / "link").symlink_to("/etc/passwd")

    def git(*words: str) -> str:
        env = {"PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": str(tmp_path)}
        name = ("-c", "user.name=a", "-c", "user.email=a@b")
        return subprocess.run(["git", *name, *words], cwd=repository, env=env, check=True, capture_output=True, text=True).stdout.strip()

    try:
        git("init", "--quiet")
    except FileNotFoundError:
        missing("git", "it is not installed")
    git("add", ".")
    git("commit", "--quiet", "-m", "one")
    commit = git("rev-parse", "HEAD")
    git("config", "uploadpack.allowAnySHA1InWant", "true")
    with pytest.raises(Refused, match="link"):
        await read_commit(str(repository), commit)
    (found,) = await read_source(str(repository), tmp_path, commit=commit, path="skills/pdf")
    assert found.name == "pdf" and found.source == {"kind": "git", "url": str(repository), "commit": commit, "path": "skills/pdf"}
    for url, wrong, path in (
        (str(repository), "main", ""),
        ("ext::sh -c id", commit, ""),
        ("--upload-pack=id", commit, ""),
        ("/x", commit, "../y"),
    ):
        with pytest.raises(UsageError):
            await read_commit(url, wrong, path)


async def test_a_folder_that_is_not_a_repository_has_no_commits(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="is not a Git repository") as raised:
        await read_source(str(tmp_path), tmp_path, commit="a" * 40)
    assert raised.value.fix == "Omit --commit to use the folder as it is."
