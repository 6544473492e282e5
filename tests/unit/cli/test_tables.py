"""Tables of commands: alignment, and narrow terminals."""

from __future__ import annotations

import pytest

from moot.cli.console.format import print_table
from moot.cli.console.lines import Lines
from moot.cli.terminal.text import width_of

HEAD = ("NAME", "STATE", "DESCRIPTION")
ROWS = (("苹果", "ready", "a description with quite a few words that must wrap"), ("pear", "-", "short"))


def printed(capsys: pytest.CaptureFixture[str], columns: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    output = Lines()
    output.stdout_terminal = bool(columns)
    print_table(output, HEAD, ROWS)
    return capsys.readouterr().out.splitlines()


def test_wide_characters_are_aligned_and_a_pipe_gets_one_line_for_each_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = printed(capsys, 0, monkeypatch)
    assert [width_of(line.partition(word)[0]) for line, word in zip(lines, ("STATE", "ready", "-"), strict=True)] == [6, 6, 6]


@pytest.mark.parametrize("columns", [100, 50, 30, 20])
def test_a_table_fits_the_terminal_and_nothing_is_cut(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = printed(capsys, columns, monkeypatch)
    assert [line for line in lines if width_of(line) > columns] == []
    words = " ".join(lines).split()
    assert [word for row in ROWS for cell in row for word in cell.split() if word not in (*words, "-")] == []
    if columns == 50:
        assert lines[2].startswith(" " * 13) and lines[2].strip()
    if columns == 20:
        assert lines[:2] == ["苹果", "  state: ready"] and "  description: a" in lines[2]
