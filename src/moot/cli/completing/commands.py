"""The commands `moot completion install` and `show`."""

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
    shell: Annotated[Shell | None, Parameter(help="Shell. Defaults to yours.")] = None,
    /,
    *,
    json: AsJson = False,
    output: Annotated[Lines, Plain],
) -> None:
    """Write the completion script where the shell looks for it, and print what else to do."""
    chosen = shell or _current_shell()
    path, hint = _place(chosen)
    write_atomically(path, SCRIPTS[chosen].encode())
    if json:
        output.json({"shell": chosen, "path": str(path), "hint": hint})
        return
    output.line(str(path))
    output.say(f"moot: {hint}")


def show(shell: Annotated[Shell, Parameter(help="Shell.")], /, *, output: Annotated[Lines, Plain]) -> None:
    """Print the completion script, for use in the shell's startup file."""
    output.data(SCRIPTS[shell])


def _current_shell() -> Shell:
    name = PurePath(os.environ.get("SHELL", "")).name
    for shell in ("bash", "zsh", "fish"):
        if name == shell:
            return shell
    raise UsageError(
        f"Completion for the shell {name!r} is not supported.", fix="Choose a shell, for example: moot completion install bash"
    )


def _place(shell: Shell) -> tuple[Path, str]:
    home = Path.home()
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    if shell == "fish":
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        return config / "fish" / "completions" / "moot.fish", "completion works in new fish shells"
    if shell == "zsh":
        folder = data / "zsh" / "site-functions"
        return folder / "_moot", f"add this line before compinit in ~/.zshrc: fpath=({folder} $fpath)"
    path = data / "bash-completion" / "completions" / "moot"
    return path, f"completion works in new shells with bash-completion; without it, add this line to ~/.bashrc: source {path}"
