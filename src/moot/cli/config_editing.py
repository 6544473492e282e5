"""`moot config edit`."""

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

BEGUN = "# moot's configuration; `moot config show` lists every setting, docs/configuration.md explains them.\n"


async def edit(*, output: Out) -> None:
    """Opens the person's file in their editor. Only what is right comes into force: else it says where, and offers to go on."""
    if not output.attended:
        raise UsageError("there is no terminal to edit on", fix="moot config set KEY VALUE")
    path = home_of(os.environ) / FILE
    before = text_of(path)
    text = before or BEGUN
    while True:
        edited = await edit_text(text, suffix=".yaml", output=output)
        if edited is None and text in (before, BEGUN):
            output.say("moot: nothing was changed")
            return
        text = text if edited is None else edited
        try:
            check_text(text, path, os.environ)
        except ConfigError as error:
            output.say(f"moot: {error.message}", "red")
            if await confirm("Edit it again?", output):
                continue
            output.say(f"moot: {path} is as it was", "yellow")
            raise
        with locked(path):
            if text_of(path) == before:
                write_atomically(path, text.encode())
                output.say(f"moot: {path} is in force", "green")
                return
        beside = path.with_name(f"{path.name}.edited")
        write_atomically(beside, text.encode())
        raise ConfigError("another program changed it while you edited", file=str(path), fix=f"yours is in {beside}: bring them together")
