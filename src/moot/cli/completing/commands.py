"""`moot completion install` and `show`."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import Annotated

from moot.cli.arguments.parameters import AsJson, Parameter, Plain
from moot.cli.completing.scripts import SCRIPTS, Shell
from moot.cli.lines import Lines
from moot.config.files import write_atomically
from moot.errors import UsageError


def install(
    shell: Annotated[Shell | None, Parameter(help="Yours when it is left out.")] = None,
    /,
    *,
    json: AsJson = False,
    output: Annotated[Lines, Plain],
) -> None:
    """Writes the script to where the shell looks for it, and says what is left to do."""
    chosen = shell or _own_shell()
    path, then = _place(chosen)
    write_atomically(path, SCRIPTS[chosen].encode())
    if json:
        output.json({"shell": chosen, "path": str(path), "then": then})
        return
    output.line(str(path))
    output.say(f"moot: {then}")


def show(shell: Annotated[Shell, Parameter(help="Whose script.")], /, *, output: Annotated[Lines, Plain]) -> None:
    """The script, to be read by the shell's own start file."""
    output.data(SCRIPTS[shell])


def _own_shell() -> Shell:
    name = PurePath(os.environ.get("SHELL", "")).name
    for shell in ("bash", "zsh", "fish"):
        if name == shell:
            return shell
    raise UsageError(f"no completion for the shell {name!r}", fix="Name one: moot completion install bash")


def _place(shell: Shell) -> tuple[Path, str]:
    home = Path.home()
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    if shell == "fish":
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        return config / "fish" / "completions" / "moot.fish", "new fish shells complete from now on"
    if shell == "zsh":
        folder = data / "zsh" / "site-functions"
        return folder / "_moot", f"put this before compinit in ~/.zshrc: fpath=({folder} $fpath)"
    path = data / "bash-completion" / "completions" / "moot"
    return path, f"new shells with bash-completion complete from now on; without it, put this into ~/.bashrc: source {path}"
