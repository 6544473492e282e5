"""The command `moot config edit`."""

from __future__ import annotations

import os

from moot.cli.asking import confirm
from moot.cli.editor import edit_text
from moot.cli.options import Out
from moot.config.files import locked, text_of, write_atomically
from moot.config.home import home_of
from moot.config.loading import FILE
from moot.config.writing import check_text
from moot.errors import ConfigError, UsageError

TEMPLATE = "# moot's configuration; `moot config show` lists every setting, docs/configuration.md explains them.\n"


async def edit(*, output: Out) -> None:
    """Edit the user's configuration file. Save it only if it is valid; otherwise print the error and offer to edit it again."""
    if not output.attended:
        raise UsageError("Editing requires a terminal.", fix="moot config set KEY VALUE")
    path = home_of(os.environ) / FILE
    before = text_of(path)
    text = before or TEMPLATE
    while True:
        edited = await edit_text(text, suffix=".yaml", output=output)
        if edited is None and text in (before, TEMPLATE):
            output.say("moot: no changes")
            return
        text = text if edited is None else edited
        try:
            check_text(text, path, os.environ)
        except ConfigError as error:
            output.say(f"moot: {error.message}", "red")
            if await confirm("Edit it again?", output):
                continue
            output.say(f"moot: {path} was not changed", "yellow")
            raise
        with locked(path):
            if text_of(path) == before:
                write_atomically(path, text.encode())
                output.say(f"moot: saved {path}", "green")
                return
        edited_copy = path.with_name(f"{path.name}.edited")
        write_atomically(edited_copy, text.encode())
        raise ConfigError(
            "Another program changed the file while you edited it.", file=str(path), fix=f"Your version is in {edited_copy}. Merge the two."
        )
