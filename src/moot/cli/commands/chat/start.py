"""`moot` without a command: start, continue or open a conversation. Large modules are imported only when needed."""

from __future__ import annotations

from typing import Annotated, Any

from moot.cli.arguments.signatures import LATEST, Call, Parameter, Plain
from moot.cli.console.lines import Lines
from moot.cli.options import NO_FLAGS, NO_SHOW, Files, RunFlags, ShowFlags, is_reference
from moot.cli.remote.address import remote_url
from moot.cli.terminal.foreground import split
from moot.errors import UsageError
from moot.plugins.registry import attribute

CHOOSE = "@choose"
"""The value of `--resume` without a conversation."""

_PERFORM = "moot.cli.runner:perform"
_RUN, _REPL = "moot.cli.run:run", "moot.cli.repl.loop:run_repl"
_NEW, _CONTINUE = "moot.cli.commands.chat.runs:new", "moot.cli.commands.chat.runs:continue_"
_BROWSE = "moot.cli.commands.chat.browser:browse"


def start(
    *prompt: Annotated[str, Parameter(help="Text of the prompt, with or without quotes. Standard input is appended.")],
    continue_: Annotated[
        str | None,
        Parameter(
            name=("--continue", "-c"),
            kind="conversation",
            implied=LATEST,
            accepts=is_reference,
            help="Continue the latest conversation in this directory, or the one with this id or list number.",
        ),
    ] = None,
    resume: Annotated[
        str | None,
        Parameter(
            name=("--resume", "-r"),
            kind="conversation",
            implied=CHOOSE,
            accepts=is_reference,
            help="Continue the conversation with this id or list number. Without a value, choose one from a list.",
        ),
    ] = None,
    print_: Annotated[bool, Parameter(name="--print", help="Print the answer and exit, as 'moot run' does.")] = False,
    file: Files | None = None,
    flags: RunFlags = NO_FLAGS,
    shown: ShowFlags = NO_SHOW,
    output: Annotated[Lines, Plain],
) -> int:
    """Start a conversation in this terminal. If there is no terminal, print the answer to the prompt."""
    if resume is not None and continue_ is not None:
        raise UsageError("--resume and --continue cannot be used together.")
    conversation = continue_ if resume is None else resume
    prints = print_ or shown.form() != "text"
    if conversation == CHOOSE:
        if remote_url():
            raise UsageError("Choosing a conversation from the list can't use --url.", fix="Specify it: -r ID or -r NUMBER.")
        if prints or prompt or file or flags != NO_FLAGS or not output.attended:
            message = "Choosing a conversation from the list needs a terminal, and no prompt or other options."
            raise UsageError(message, fix="Specify the conversation: -r ID or -r NUMBER.")
        return attribute(_BROWSE)(output, "", "")
    options: dict[str, Any] = {"file": file, "flags": flags, "shown": shown}
    if remote_url() and output.attended and not (prompt or file):
        message = "An interactive conversation can't use --url."
        raise UsageError(message, fix='Pass a prompt, as in moot --url URL "…". With -c, the next prompt continues the conversation.')
    if prints or not output.attended or remote_url():
        call = Call(attribute(_RUN), prompt, {**options, "continue_": conversation}, bare=False)
    elif conversation is not None:
        call = Call(attribute(_CONTINUE), (conversation, *prompt), options, bare=False, stays=True)
    elif prompt or file or flags != RunFlags(yes=flags.yes):
        call = Call(attribute(_NEW), prompt, options, bare=False, stays=True)
    else:
        call = Call(attribute(_REPL), (None,), {"yes": flags.yes}, bare=False, stays=True)
    if call.stays:
        split()
    return attribute(_PERFORM)(call)
