"""`moot chat`: where each of its commands is."""

from __future__ import annotations

from cyclopts import App

app = App(
    name="chat", help="Conversations: new, continue, list, show, resume, stop, delete, restore.", help_format="plaintext", version_flags=()
)

for _name, _path, _words, _example in (
    ("new", "chat_running:new", "Begins a conversation.", 'moot chat new "let us plan the release"'),
    ("continue", "chat_running:continue_", "Goes on with a conversation.", 'moot chat continue 1 "and the tests?"'),
    ("resume", "chat_running:resume", "Takes up an interrupted or waiting run, and shows all of it.", "moot chat resume 1"),
    ("list", "chat_reading:list_", "All conversations, newest activity first.", "moot chat list --limit 10"),
    ("show", "chat_reading:show", "The messages of a conversation.", "moot chat show 1"),
    ("stop", "chat_reading:stop", "Stops a conversation's run, wherever it runs.", "moot chat stop 1"),
    ("delete", "chat_reading:delete", "Marks a conversation deleted; nothing of it is lost.", "moot chat delete 0193a4"),
    ("restore", "chat_reading:restore", "Brings a deleted conversation back.", "moot chat restore 0193a4"),
):
    app.command(f"moot.cli.{_path}", name=_name, help=f"{_words}\n\nFor instance:\n  {_example}")
