"""Edit a configuration file in the user's editor. The file is saved only if it is valid."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from moot.cli.console.output import Output
from moot.cli.terminal.prompts.editor import edit_text
from moot.cli.terminal.prompts.plain import confirm
from moot.config.home import lock_file, read_text, write_atomically
from moot.errors import ConfigError


async def edit_checked(path: Path, template: str, check: Callable[[str, str], object], output: Output, *, lock: Path) -> bool:
    """Let the user edit the file, or the template if the file is empty, until `check` accepts the text or the user gives up.

    `lock` is the file or folder to lock while the file is written. `check` is called with the new and the old text, and raises ConfigError
    if the new text is invalid. Return False if nothing was changed. Raise ConfigError if the user gives up or another program has changed
    the file.
    """
    before = read_text(path, mark=True)
    text = before or template
    while True:
        edited = await edit_text(text, suffix=path.suffix, output=output)
        if edited is None and text in (before, template):
            output.say("moot: no changes")
            return False
        text = text if edited is None else edited
        try:
            check(text.removeprefix("\ufeff"), before.removeprefix("\ufeff"))
        except ConfigError as error:
            output.say(f"moot: {error.message}", "red")
            if await confirm("Edit it again?", output):
                continue
            output.say(f"moot: {path} was not changed", "yellow")
            raise
        with lock_file(lock):
            if read_text(path, mark=True) == before:
                write_atomically(path, text.encode())
                output.say(f"moot: saved {path}", "green")
                return True
        edited_copy = path.with_name(f"{path.name}.edited")
        write_atomically(edited_copy, text.encode())
        raise ConfigError(
            "Another program changed the file while you edited it.", file=str(path), fix=f"Your version is in {edited_copy}. Merge the two."
        )
