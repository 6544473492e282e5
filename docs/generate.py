"""Generate the parts of the docs that come from the code: everything between `<!-- from the code: NAME -->` and `<!-- end -->`.

Also generate `openapi.json`, and the JSON tables in `src/moot` that are read where importing the code itself would take too long.

python docs/generate.py          write all of them
python docs/generate.py --check  list the outdated ones; exit with 1 if there are any
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from moot import errors
from moot.cli.arguments.completion import FILE as TABLE
from moot.cli.arguments.completion import build_table, leaves
from moot.cli.repl import keys as keyboard
from moot.cli.tree import TREE
from moot.commands import built_in
from moot.config.home import KEY_VARIABLES
from moot.plugins import DIALECTS, FORMATS, PROVIDERS, TOOLS
from moot.server.app import routed
from moot.server.routes.documentation import specification
from moot.tools import catalogue
from moot.types.canonical import JsonObject
from moot.types.format import DeclaresFidelity, WriteOnly
from moot.types.shortcuts import ACTIONS, chords_of

OPERATIONS = Path(__file__).parent / "openapi.json"
"""The types of the web page are generated from this file too."""

MARKED = re.compile(r"(<!-- from the code: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]]) + "\n"


def code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


HELD = ("messages", "reasoning", "signatures", "tool calls", "pictures", "files", "other parts", "times", "models", "usage", "costs")
HELD_OF_ALL = ("titles", "branches", "sub-agents")


def holdings() -> str:
    """Return a table of what each format preserves, for the formats that declare it."""
    words = {"kept": "kept", "approximated": "~"}
    rows: list[tuple[str, ...]] = []
    for name in FORMATS.names():
        format = FORMATS.make(name)
        if isinstance(format, DeclaresFidelity) and format.holds:
            back = " Only written." if isinstance(format, WriteOnly) else ""
            said = f"{format.words[0].upper()}{format.words[1:]}.{back}"
            rows.append((f"`{name}`", said, *(words.get(format.holds.get(thing, ""), "") for thing in (*HELD, *HELD_OF_ALL))))
    return table(("format", "", *HELD, *HELD_OF_ALL), rows)


def providers() -> str:
    rows: list[tuple[str, ...]] = []
    for name in PROVIDERS.names():
        facts = getattr(PROVIDERS.load(name), "facts", None)
        if facts is None:
            rows.append((f"`{name}`", "", "", "none", ""))
        else:
            rows.append(
                (
                    f"`{name}`",
                    code([facts.dialect]),
                    code(filter(None, [facts.base_url])),
                    code(KEY_VARIABLES.get(name, ())) or "none",
                    code(facts.plans),
                )
            )
    return table(("name", "dialect", "base_url", "key variable, the first that is set", "plans"), rows)


def dialects() -> str:
    return table(("name", "what it is"), ((f"`{name}`", first_line(DIALECTS.load(name))) for name in DIALECTS.names()))


def tools() -> str:
    rows: list[tuple[str, ...]] = []
    for name in TOOLS.names():
        tool = TOOLS.load(name)
        arguments = code(tool.arguments.model_fields)
        rows.append((f"`{name}`", tool.description.replace("\n", " "), arguments, ", ".join(sorted(tool.effects)) or "none"))
    return table(("name", "description", "arguments", "effects"), rows)


def commands() -> str:
    return table(("command", "what it does"), ((f"`moot {' '.join(path)}`", command.help) for path, command in leaves(TREE)))


def slash_commands() -> str:
    rows = ((f"/`{one.name}`", one.argument.replace("|", "\\|"), one.help, one.category) for one in built_in().facts())
    return table(("command", "argument", "what it does", "category"), rows)


def keys() -> str:
    rows = zip(keyboard.table(chords_of({})), ACTIONS, strict=True)
    return table(("key", "what it does", "action"), ((*row, f"`{name}`") for row, name in rows))


def exit_codes() -> str:
    rows = [(str(error.exit_code), f"`{error.code}`", f"`{name}`") for name in errors.__all__ for error in [getattr(errors, name)]]
    return table(("exit code", "code", "error"), sorted(rows, key=lambda row: (int(row[0]), row[1])))


def first_line(thing: object) -> str:
    return summary(thing.__doc__)


def summary(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


SECTIONS: dict[str, Callable[[], str]] = {
    "holdings": holdings,
    "providers": providers,
    "dialects": dialects,
    "tools": tools,
    "commands": commands,
    "exit_codes": exit_codes,
    "slash_commands": slash_commands,
    "keys": keys,
}


def written_anew(text: str) -> str:
    """Return the page with every marked part generated again from the code."""
    return MARKED.sub(lambda part: part[1] + SECTIONS[part[2]]() + part[4], text)


def stale(folder: Path) -> list[Path]:
    """Return the pages with outdated parts."""
    return [page for page in sorted(folder.glob("*.md")) if (text := page.read_text(encoding="utf-8")) != written_anew(text)]


def tables() -> dict[Path, JsonObject]:
    """Return the current content of the generated JSON files: tables that save an import, and the server's OpenAPI document."""
    return {TABLE: build_table(), catalogue.FILE: catalogue.generated_table(), OPERATIONS: specification(routed())}


def main(folder: Path, *, check: bool) -> int:
    told = "outdated" if check else "written"
    anew = {page: written_anew(page.read_text(encoding="utf-8")) for page in stale(folder)}
    for file, data in tables().items():
        if (text := json.dumps(data, indent=1) + "\n") != (file.read_text(encoding="utf-8") if file.exists() else ""):
            anew[file] = text
    for file, text in anew.items():
        print(f"{told}: {file}")
        if not check:
            file.write_text(text, encoding="utf-8")
    return 1 if check and anew else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parent, check="--check" in sys.argv))
