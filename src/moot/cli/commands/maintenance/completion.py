"""The commands of `moot completion`."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import Annotated, Literal

from moot.cli.arguments.completion import candidates, split
from moot.cli.arguments.signatures import AsJson, Parameter, Plain
from moot.cli.console.lines import Lines
from moot.config.home import write_atomically
from moot.errors import UsageError
from moot.guard.terminal import clean

Shell = Literal["bash", "zsh", "fish"]

SCRIPTS = {
    "bash": r"""# moot: completion for bash
_moot() {
    local value files=
    COMPREPLY=()
    while IFS=$'\t' read -r value _; do
        if [[ $value == ":files" ]]; then files=1; else COMPREPLY+=("$value"); fi
    done < <(command "${COMP_WORDS[0]}" completion words bash "${COMP_LINE:0:COMP_POINT}" "${COMP_WORDS[COMP_CWORD]}" 2>/dev/null)
    if [[ $files && ${#COMPREPLY[@]} -eq 0 ]]; then compopt -o default 2>/dev/null; fi
}
complete -F _moot moot
""",
    "zsh": r"""#compdef moot
# moot: completion for zsh
_moot() {
    local value words_ files=
    local -a found about
    while IFS=$'\t' read -r value words_; do
        if [[ $value == ":files" ]]; then files=1; else found+=("$value"); about+=("$value${words_:+  -- $words_}"); fi
    done < <(command "${words[1]}" completion words zsh "${(j: :)words[1,CURRENT-1]} $PREFIX" 2>/dev/null)
    if (( ${#found} )); then compadd -l -d about -a found; fi
    if [[ -n $files ]]; then _files; fi
}
if [[ $funcstack[1] == _moot ]]; then _moot "$@"; else compdef _moot moot; fi
""",
    "fish": r"""# moot: completion for fish
function __moot_words
    command moot completion words fish (commandline -cp | string collect) 2>/dev/null | while read -l line
        if test "$line" = ":files"
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c moot -f -a '(__moot_words)'
""",
}


def install(
    shell: Annotated[Shell | None, Parameter(help="Name of the shell. Defaults to your login shell.")] = None,
    /,
    *,
    json: AsJson = False,
    output: Annotated[Lines, Plain],
) -> None:
    """Write the completion script to the place where the shell looks for it, and print any remaining steps."""
    chosen = shell or PurePath(os.environ.get("SHELL", "")).name
    if chosen not in SCRIPTS:
        fix = "Choose a shell, for example: moot completion install bash"
        raise UsageError(f"Completion for the shell {chosen!r} is not supported.", fix=fix)
    path, hint = _place(chosen)
    write_atomically(path, SCRIPTS[chosen].encode())
    if json:
        output.json({"shell": chosen, "path": str(path), "hint": hint})
        return
    output.line(str(path))
    output.say(f"moot: {hint}")


def show(shell: Annotated[Shell, Parameter(help="Name of the shell.")], /, *, output: Annotated[Lines, Plain]) -> None:
    """Print the completion script, for use in the shell's startup file."""
    output.data(SCRIPTS[shell])


def _place(shell: str) -> tuple[Path, str]:
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


_BREAKS = frozenset("=:@")
"""Characters at which bash splits words."""


def words(
    shell: Annotated[Shell, Parameter(help="Shell to print completions for.")],
    line: Annotated[str, Parameter(help="Command line up to the cursor.")],
    last: Annotated[str, Parameter(help="Word to complete. The shell replaces it with the completion.")] = "",
    /,
    *,
    output: Annotated[Lines, Plain],
) -> None:
    """Print the candidates for a command line, one per line with a description. Print nothing if an error occurs."""
    try:
        half = split(line)
        found = candidates(half) if half else None
    except Exception:  # noqa: BLE001  an error must not appear while the user is typing
        return
    if half is None or found is None:
        return
    cut = _cut(half.part, last) if shell == "bash" and not half.quoted else 0
    for value, about in found.values:
        text = value[cut:]
        if shell == "bash" and not half.quoted:
            text = text.replace(" ", "\\ ")
        output.data(f"{text}\t{' '.join(clean(about).split())}\n")
    if found.files:
        output.data(":files\n")


def _cut(part: str, last: str) -> int:
    """Return how many leading characters to cut off candidates. Bash splits words at `=`, `:` and `@`, and replaces only the last part."""
    kept = len(part) if not last or last in _BREAKS else len(part) - len(last) if part.endswith(last) else 0
    return kept - (part[kept - 1 : kept] == "@")  # @ marks host names in bash and is replaced with the word
