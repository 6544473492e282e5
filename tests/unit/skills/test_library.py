"""Finding skills in all places, and what a person has decided about them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from moot.config.plugins.content import FILES, digest_of
from moot.config.settings import Settings
from moot.config.trust import trust_content
from moot.errors import NotFound, Refused
from moot.skills.content import copy_to, read_file
from moot.skills.decisions import FILE, accept, decisions, mark_used, set_scripts, set_use
from moot.skills.library import find_skill, find_skills, select, skills_like
from moot.skills.prompt import ENABLED_CHARACTERS, LIST_CHARACTERS, bounded, offer
from moot.skills.selection import prepare, selected
from moot.types.agent import Agent
from moot.types.conversation import Conversation
from moot.types.skill import REVISION, SKILL_FILE, Skill, SkillSelection, SkillText

pytestmark = pytest.mark.anyio


def put(root: Path, name: str = "pdf", body: str = "Do it.", metadata: str = "{}") -> Path:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {name}\ndescription: Use {name}.\nmetadata: {metadata}\n---\n{body}\n"
    (folder / SKILL_FILE).write_text(text)
    return folder


@pytest.fixture
def home(_closed_home: Path) -> Path:
    return _closed_home / "moot"


@pytest.fixture
def user(_closed_home: Path) -> Path:
    return _closed_home


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "src").mkdir()
    return tmp_path / "repo"


def statuses(home: Path, folder: Path | str = "") -> list[tuple[str, str, str]]:
    return [(skill.name, skill.place, skill.status) for skill in find_skills(home, str(folder))]


def trust(home: Path, folder: Path) -> None:
    trust_content(home, folder / SKILL_FILE, digest_of(folder))


def test_skills_of_all_roots_are_found_and_the_nearest_usable_one_wins(home: Path, user: Path, project: Path) -> None:
    for root in (home / "skills", user / ".agents/skills", user / ".claude/skills", user / ".talkcody/skills"):
        put(root, "pdf")
    for name in (".agents", ".claude", ".talkcody"):
        put(project / name / "skills", f"own-{name[1:]}")
    near = put(project / "src" / ".agents/skills", "pdf")
    found = statuses(home, project / "src")
    assert [place for _, place, _ in found] == ["project"] * 4 + ["home"] + ["user"] * 3
    assert [status for _, _, status in found] == ["untrusted"] * 4 + ["offered"] + ["shadowed"] * 3
    trust(home, near)
    assert [status for _, _, status in statuses(home, project / "src")][:5] == ["offered"] + ["untrusted"] * 3 + ["shadowed"]


def test_the_users_home_is_not_a_project(home: Path, user: Path) -> None:
    put(user / ".claude/skills")
    assert statuses(home, user) == [("pdf", "user", "offered")]


def test_other_users_get_only_trusted_skills_of_their_project(home: Path, user: Path, project: Path) -> None:
    put(home / "skills", "mine")
    put(user / ".agents/skills", "shared")
    trust(home, put(project / ".agents/skills", "theirs"))
    found = find_skills(home, str(project / "src"), is_local=False, boundary=str(project))
    assert [(skill.name, skill.status) for skill in found] == [("theirs", "offered")]
    assert find_skills(home, str(project / "src"), is_local=False, boundary=str(project / "src")) == []


def test_a_link_out_of_a_project_is_not_a_skill(home: Path, project: Path, tmp_path: Path) -> None:
    outside = put(tmp_path / "outside")
    (project / ".agents/skills").mkdir(parents=True)
    (project / ".agents/skills/pdf").symlink_to(outside)
    assert statuses(home, project) == []


def test_a_changed_skill_loses_what_was_decided_about_it(home: Path) -> None:
    folder = put(home / "skills")
    (folder / "scripts").mkdir()
    script = folder / "scripts/run.sh"
    script.write_text("echo one")
    set_use(home, find_skill(home, "pdf"), "enabled", 3)
    set_scripts(home, find_skill(home, "pdf"), "allow")
    assert find_skill(home, "pdf").status == "enabled"
    times = script.stat()
    script.write_text("echo two")  # the same size, and the time is set back
    os.utime(script, ns=(times.st_atime_ns, times.st_mtime_ns))
    changed = find_skill(home, "pdf")
    assert changed.status == "changed" and "moot skills accept" in changed.problem
    with pytest.raises(Refused):
        set_use(home, changed, "enabled")
    with pytest.raises(Refused):
        set_scripts(home, changed, "allow")
    set_use(home, changed, "disabled")
    assert find_skill(home, "pdf").status == "changed"
    accept(home, changed)
    after = find_skill(home, "pdf")
    assert (after.decision.scripts, after.decision.priority) == ("ask", 3)


def test_a_trusted_skill_that_changes_is_not_used(home: Path, project: Path) -> None:
    folder = put(project / ".agents/skills")
    trust(home, folder)
    assert statuses(home, project) == [("pdf", "project", "offered")]
    (folder / "more.md").write_text("More.")
    assert statuses(home, project) == [("pdf", "project", "untrusted")]


def test_a_damaged_list_of_decisions_allows_nothing(home: Path) -> None:
    put(home / "skills")
    path = home / "skills" / FILE
    path.write_text('{"skills": {"pdf": {"use": "enabled?", "scripts": "always", "priority": true}}}')
    assert (found := decisions(home)["pdf"]).use == "disabled" and found.scripts == "never" and found.priority == 0
    path.write_text("[")
    assert statuses(home) == [("pdf", "home", "offered")]


def test_the_last_use_is_kept_and_accepts_nothing(home: Path) -> None:
    folder = put(home / "skills")
    mark_used(home, "pdf", 5)
    (folder / "new.md").write_text("x")
    skill = find_skill(home, "pdf")
    assert (skill.status, skill.decision.used_at, skill.decision.digest) == ("offered", 5, "")


def test_invalid_skills_are_listed_with_the_reason(home: Path) -> None:
    folder = put(home / "skills", "pdf")
    folder.rename(home / "skills" / "other")
    put(home / "skills", "hidden", body="a\u200bb")
    (put(home / "skills", "linked") / SKILL_FILE).unlink()
    (home / "skills/linked" / SKILL_FILE).symlink_to(home / "skills/hidden" / SKILL_FILE)
    found = find_skills(home)
    assert [skill.status for skill in found] == ["invalid"] * 3
    assert "U+200B" in found[0].problem and "is a link" in found[1].problem and "differs" in found[2].problem


def test_agents_limit_skills_and_conversations_enable_some(home: Path) -> None:
    for name in "abcd":
        put(home / "skills", name)
    set_use(home, find_skill(home, "d"), "enabled", 1)
    set_use(home, find_skill(home, "c"), "enabled", 9)
    skills = find_skills(home)

    def names(agent: tuple[str, ...] | None, conversation: tuple[str, ...] | None) -> tuple[str, str]:
        chosen = select(skills, agent, conversation)
        return "".join(skill.name for skill in chosen.offered), "".join(skill.name for skill in chosen.enabled)

    assert names(None, None) == ("ab", "cd")
    assert names(("b", "a", "d"), None) == ("ba", "d")
    assert names((), None) == ("", "")
    assert names(None, ()) == ("", "")
    assert names((), ("b", "missing", "d")) == ("", "bd")
    assert names(None, ("b",)) == ("a", "bcd")
    set_use(home, find_skill(home, "b"), "disabled")
    skills = find_skills(home)
    assert names(None, ("b",)) == ("a", "cd")


def test_the_prompt_is_bounded(home: Path) -> None:
    def skill(name: str, size: int) -> Skill:
        return Skill(name, home, "home", SkillText(name, "d" * 1000, body="x" * size))

    large = bounded(SkillSelection(enabled=(skill("a", ENABLED_CHARACTERS), skill("b", 1))))
    assert ([each.name for each in large.enabled], [each.name for each in large.offered]) == (["a"], ["b"])
    listed = offer([skill(f"s{number}", 1) for number in range(100)])
    assert len(listed) < LIST_CHARACTERS + 400 and "more, which are not listed" in listed


def test_skills_are_filtered_by_words_category_and_tag(home: Path) -> None:
    put(home / "skills", "pdf", metadata="{category: Office, tags: [forms, print]}")
    put(home / "skills", "git")
    found = find_skills(home)
    assert [skill.name for skill in skills_like(found, "FORMS pdf", "office", "print")] == ["pdf"]
    assert skills_like(found, "", "office", "git") == []
    with pytest.raises(NotFound, match="Did you mean 'pdf'"):
        find_skill(home, "pdff")


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "link", "folder/../../secret", "links/inside"])
def test_only_files_of_the_skill_are_read(home: Path, name: str) -> None:
    folder = put(home / "skills")
    (home / "skills/secret").write_text("secret")
    (folder / "link").symlink_to(home / "skills/secret")
    (folder / "links").symlink_to(folder)
    (folder / "inside").write_text("x")
    with pytest.raises((Refused, NotFound)):
        read_file(folder, name)
    assert read_file(folder, "inside") == b"x"


def test_the_digest_covers_names_content_and_links(home: Path) -> None:
    folder = put(home / "skills")
    seen = {digest_of(folder)}
    (folder / "a").write_text("x")
    seen.add(digest_of(folder))
    (folder / "a").rename(folder / "b")
    seen.add(digest_of(folder))
    (folder / "c").symlink_to("b")
    seen.add(digest_of(folder))
    assert len(seen) == 4
    (folder / "b").chmod(0o755)  # archives and backups don't keep it
    assert digest_of(folder) in seen
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/a.pyc").write_text("x")
    assert digest_of(folder) in seen
    os.mkfifo(folder / "pipe")
    with pytest.raises(Refused, match="neither a file nor a folder"):
        digest_of(folder)


def test_too_many_files_are_refused(home: Path) -> None:
    folder = put(home / "skills")
    for number in range(FILES):
        (folder / str(number)).touch()
    assert "more than" in find_skills(home)[0].problem


def test_a_script_runs_from_a_copy_of_the_named_revision(home: Path) -> None:
    folder = put(home / "skills")
    (folder / "scripts").mkdir()
    (folder / "scripts/run.py").write_text("print(1)")
    (folder / "scripts/data").write_text("x")
    (folder / "scripts/tool").write_text("#!/bin/sh\n")
    skill = find_skill(home, "pdf")
    revision = skill.digest[:REVISION]
    run = prepare(skill, revision, "scripts/run.py 'a b' ';' --x", home)
    assert run.line == f"python3 {run.folder}/pdf/scripts/run.py 'a b' ';' --x"
    for wrong, words in ((f"{revision[:-1]}x", "current revision"), (revision, "not a script")):
        with pytest.raises(Refused, match=words):
            prepare(skill, wrong, "scripts/../SKILL.md", home)
    with pytest.raises(Refused, match="interpreter is unknown"):
        prepare(skill, revision, "scripts/data", home)
    run = prepare(skill, revision, "./scripts/tool", home)
    assert run.line == f"{run.folder}/pdf/scripts/tool" and os.access(run.line, os.X_OK)
    with pytest.raises(Refused, match="turned off"):
        prepare(replace(skill, decision=replace(skill.decision, scripts="never")), revision, "scripts/run.py", home)
    (folder / "scripts/run.py").write_text("print(2)")
    with pytest.raises(Refused, match="changed while it was being copied"):
        prepare(skill, revision, "scripts/run.py", home)
    (folder / "link").symlink_to("/etc/passwd")
    with pytest.raises(Refused, match="is a link"):
        copy_to(folder, home / "copy")


async def test_a_small_model_gets_only_skills_that_its_agent_or_the_conversation_names(home: Path) -> None:
    put(home / "skills")
    settings = Settings(home)
    for agent, chosen, found in ((Agent(), None, 0), (Agent(skills=("pdf",)), None, 1), (Agent(), ["pdf"], 1)):
        conversation = Conversation("c", settings={"skills": list(chosen)} if chosen else {})
        assert len((await selected(settings, agent, conversation, small=True)).all) == found
    assert len((await selected(settings, Agent(), Conversation("c"))).all) == 1
