"""Guides stay correct: their paths exist, examples parse, and everything that can be configured or called is documented."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from moot import plugins
from moot.config.loader import load
from moot.config.schema import SHAPES, Configuration, fields_at
from moot.errors import ConfigError
from moot.plugins import Registry
from style.tree import modules, none_of

GUIDES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md", "docs/*.md", "tests/*/README.md")
REGISTRIES = {name: value for name, value in vars(plugins).items() if isinstance(value, Registry)}
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
THEIRS = (
    *("config.yaml", "data/", "state/", ".moot/", "agents/", "skills/", "commands/", "memory/", ".venv/"),
    *("SKILL.md", ".agents/", ".claude/", ".claude-plugin/", ".talkcody/", ".cursor/", ".vscode/"),
    *(".git/", ".worktrees/", "moot/NAME"),
)
"""Files in a user's folders, not in the repository."""


def guides(root: Path) -> Iterator[Path]:
    for pattern in GUIDES:
        yield from sorted(path for path in root.glob(pattern) if "node_modules" not in path.parts)


def named_paths(text: str) -> Iterator[str]:
    """Return paths in backticks (those in code blocks belong to the user) and targets of links."""
    prose = FENCE.sub("", text)
    for quoted in re.findall(r"`([^`\n]+)`", prose):
        if re.fullmatch(r"[\w./-]+\.(py|md|toml|sql|sh|lock)|(?:[\w.-]+/)+[\w.-]*", quoted) and not quoted.startswith("/"):
            yield quoted
    yield from LINK.findall(prose)


def missing_paths(root: Path, page: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    places = (root, page.parent, root / "src" / "moot")
    return [
        f"{page.relative_to(root)}: {path}"
        for path in dict.fromkeys(named_paths(text))
        if not path.startswith(THEIRS) and not any((place / path).exists() for place in places)
    ]


def missing_in_code(root: Path) -> list[str]:
    """Return missing files that a docstring or comment of the source names as `room/file.py`."""
    found: list[str] = []
    for name, _ in modules(root / "src" / "moot"):
        text = (root / "src" / "moot" / name).read_text(encoding="utf-8")
        for path in re.findall(r"`((?:[\w-]+/)+[\w-]+\.py)`", text):
            if not any((place / path).exists() for place in (root, root / "src" / "moot", (root / "src" / "moot" / name).parent)):
                found.append(f"{name}: {path}")
    return found


def blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in FENCE.findall(page.read_text(encoding="utf-8")) if kind == language]


def untold(names: list[str], *pages: Path) -> list[str]:
    """Return names that are in backticks on none of the pages."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    return [name for name in names if not re.search(rf"`(?:[\w.]*\.)?{re.escape(name)}(?:[:=][^`]*)?`", text)]


def requirements(pyproject: Path) -> set[str]:
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    listed = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    return {re.split(r"[\[<>=!~; ]", line)[0] for line in listed}


def explained(page: Path) -> set[str]:
    return set(re.findall(r"^\| `([\w.-]+)` \| [^|]+ \| [^|]{10,} \|$", page.read_text(encoding="utf-8"), re.MULTILINE))


def command_line(readme: Path, name: str) -> str:
    """Return the only line below `<!-- command: NAME -->`, as .ci/run reads it."""
    match = re.search(rf"^<!-- command: {name} -->\n```sh\n(.+)\n```$", readme.read_text(encoding="utf-8"), re.MULTILINE)
    return match[1] if match else ""


# ── the real guides ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_paths_that_guides_name_exist(repository: Path) -> None:
    none_of([path for page in guides(repository) for path in missing_paths(repository, page)])


def test_paths_that_the_source_names_exist(repository: Path) -> None:
    none_of(missing_in_code(repository))


def test_every_yaml_block_is_a_configuration(repository: Path, tmp_path: Path) -> None:
    variables = {name: "x" for page in guides(repository) for name in re.findall(r"\$\{(\w+)", page.read_text(encoding="utf-8"))}
    found = 0
    for page in guides(repository):
        for number, block in enumerate(blocks(page, "yaml")):
            home = tmp_path / f"{page.stem}-{number}"
            home.mkdir()
            (home / "config.yaml").write_text(block, encoding="utf-8")
            load(home=home, environ=variables, directory=home)
            found += 1
    assert found >= 4


def test_generated_parts_are_fresh(repository: Path) -> None:
    none_of(runpy.run_path(str(repository / "docs" / "generate.py"))["stale"](repository / "docs"))


PAGES = {
    "COMMANDS": "terminal",
    "PROVIDERS": "providers",
    "DIALECTS": "providers",
    "TOOLS": "tools",
    "AGENTS": "configuration",
    "AGENT_DEFINITIONS": "plugins",
    "FACES": "library",
    "CHANNELS": "plugins",
    "DELIVERIES": "cron",
    "FORMATS": "plugins",
    "KNOWN_AGENTS": "agents",
    "PROMPT_PARTS": "agents",
    "TRANSLATORS": "agents",
}


@pytest.mark.parametrize("registry", REGISTRIES)
def test_every_plugin_is_documented(repository: Path, registry: str) -> None:
    none_of(untold(REGISTRIES[registry].names(), repository / "docs" / f"{PAGES[registry]}.md"))


def parts_of(annotation: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], type[BaseModel]]]:
    """Yield the parts of the configuration that a type contains, with their paths."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield path, annotation
        for name, field in annotation.model_fields.items():
            yield from parts_of(field.annotation, (*path, name))
        return
    kind, inside = get_origin(annotation), get_args(annotation)
    for one in inside[1:] if kind is dict else inside:
        yield from parts_of(one, (*path, "*") if kind in (dict, list) else path)


def test_errors_about_unknown_keys_list_the_known_keys_of_every_section() -> None:
    assert [path for path, part in parts_of(Configuration) if fields_at(path) != list(part.model_fields)] == []


def test_every_setting_is_documented(repository: Path) -> None:
    settings = [field for part in SHAPES.values() for field in part.model_fields]
    none_of(untold(settings, repository / "docs" / "configuration.md"))


def test_every_dependency_has_its_reason(repository: Path) -> None:
    assert explained(repository / "docs" / "dependencies.md") == requirements(repository / "pyproject.toml")


def test_the_readme_has_two_commands_of_one_line_without_make(repository: Path) -> None:
    for name, end in (("first-answer", ""), ("tests", ".venv/bin/pytest -n 4")):
        line = command_line(repository / "README.md", name)
        assert line.startswith("python3 -m venv .venv && .venv/bin/pip ")
        assert line.endswith(end)
        assert "make" not in line


def test_make_lists_every_target(repository: Path) -> None:
    text = (repository / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", text, re.MULTILINE))
    wanted = {"setup", "check", "test", "test-all", "docs", "record", "bench", "chaos", "web", "test-agents", "release"}
    assert wanted <= targets
    if shutil.which("make") is None and not os.environ.get("CI"):
        pytest.skip("there is no make on this machine")
    said = subprocess.run(["make", "--no-print-directory"], cwd=repository, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^  make ([a-z-]+)", said, re.MULTILINE)) == targets


@pytest.mark.parametrize("target", ["chaos", "test-agents"])
def test_make_runs_the_slow_tests_of_a_lane(target: str, repository: Path) -> None:
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (repository / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert recipe is not None
    (line,) = (line for line in recipe[1].splitlines() if "/pytest" in line)
    assert re.search(r" -m (slow|'') tests/", line), f"pytest's default options leave the slow tests out of: {line}"


# ── the checks themselves ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text", ["`store/gone.py`", "`docs/gone.md`", "[there](gone.md)", "in `tests/gone/`", "`gone.toml`"])
def test_a_path_that_is_not_there_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "src" / "moot" / "store").mkdir(parents=True)
    (tmp_path / "src" / "moot" / "store" / "log.py").touch()
    page = tmp_path / "README.md"
    page.write_text(
        f"{text} and `store/log.py`, [this](README.md#below), [that](https://example.org/x.md), `src/moot/`, `~/x/y.py`, `/etc/z.md`"
    )
    assert len(missing_paths(tmp_path, page)) == 1


def test_a_path_in_a_docstring_that_is_not_there_is_named(tmp_path: Path) -> None:
    room = tmp_path / "src" / "moot" / "store"
    room.mkdir(parents=True)
    (room / "log.py").write_text('"""See `store/log.py` and `runtime/gone.py`."""')
    assert missing_in_code(tmp_path) == ["store/log.py: runtime/gone.py"]


def test_an_invalid_yaml_block_is_reported(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```yaml\nmodels: {mian: x@y}\n```\n```sh\nls\n```\n")
    (block,) = blocks(page, "yaml")
    (tmp_path / "config.yaml").write_text(block)
    with pytest.raises(ConfigError, match="mian"):
        load(home=tmp_path, environ={}, directory=tmp_path)


def test_an_undocumented_name_is_reported(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("`read_file`, shell and `limits.steps` and `mode: ask`")
    assert untold(["read_file", "shell", "steps", "mode", "read"], page) == ["shell", "read"]


def test_a_stale_part_is_named(repository: Path, tmp_path: Path) -> None:
    generate = runpy.run_path(str(repository / "docs" / "generate.py"))
    (tmp_path / "tools.md").write_text("<!-- from the code: exit_codes -->\n| gone |\n<!-- end -->\nand more\n")
    assert generate["stale"](tmp_path) == [tmp_path / "tools.md"]
    assert generate["main"](tmp_path, check=True) == 1
    assert generate["main"](tmp_path, check=False) == 0
    assert generate["stale"](tmp_path) == []
    assert (tmp_path / "tools.md").read_text().endswith("<!-- end -->\nand more\n")


def test_a_dependency_without_a_reason_is_missed(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\ndependencies = ["a>=1; x", "b[c]==2"]\n[project.optional-dependencies]\nd = ["e.f <3"]\n'
    )
    (tmp_path / "page.md").write_text("| `a` | MIT | because it is needed |\n| `b` | MIT | no |\n")
    assert requirements(tmp_path / "pyproject.toml") == {"a", "b", "e.f"}
    assert explained(tmp_path / "page.md") == {"a"}
