"""Completion scripts of the shells, which call `moot completion words`."""

from __future__ import annotations

from typing import Literal

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
