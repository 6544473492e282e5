"""The commands of `moot chat`."""

from __future__ import annotations

from moot.cli.tree.nodes import Group, command

CHAT = Group(
    "Start, continue and manage conversations.",
    {
        "new": command("commands.chat.runs:new", "Start a conversation.", ('moot chat new "let us plan the release"',), stays=True),
        "continue": command(
            "commands.chat.runs:continue_",
            "Continue a conversation.",
            ("moot chat continue 3 and now the tests", "moot chat continue 3 --again"),
            details="Without a prompt, answer the last message if it is a user message. On a terminal, keep the conversation open.",
            stays=True,
        ),
        "list": command(
            "commands.chat.list:list_",
            "List conversations, most recent activity first.",
            ("moot chat list", "moot chat list release --here"),
            details="On a terminal, choose a conversation to continue, edit or delete.",
            bare=True,
        ),
        "show": command(
            "commands.chat.show:show",
            "Show the messages of a conversation.",
            ("moot chat show 1", "moot chat show 1 --limit 10", "moot chat show 1 --at 4", "moot chat show 1 --raw"),
        ),
        "edit": command(
            "edits.edit:edit",
            "Edit messages in your editor.",
            ("moot chat edit 1", "moot chat edit 1 4 --no-answer", "moot chat edit 1 --all"),
            details="The original messages are kept on another branch.",
        ),
        "tree": command("commands.chat.show:tree", "Show all messages of a conversation as a tree of branches.", ("moot chat tree 1",)),
        "switch": command("commands.chat.changes:switch", "Switch a conversation to another branch.", ("moot chat switch 1 4",)),
        "fork": command(
            "commands.chat.changes:fork",
            "Copy a conversation, or its messages up to a given one, to a new conversation.",
            ("moot chat fork 1 4",),
        ),
        "rename": command("commands.chat.changes:rename", "Set the title of a conversation.", ("moot chat rename 1 release plans",)),
        "settings": command(
            "commands.chat.changes:settings",
            "Show or change the settings of a conversation.",
            ("moot chat settings 1", "moot chat settings 1 mode=edits effort=high", "moot chat settings 1 mode="),
            details="The settings apply to every prompt that doesn't override them. Slash commands such as '/mode' change them too.",
        ),
        "context": command("commands.chat.context:context", "Show what fills the context of the next request.", ("moot chat context 1",)),
        "compact": command(
            "commands.chat.context:compact", "Summarize the older messages of a conversation.", ('moot chat compact 1 --focus "the API"',)
        ),
        "undo": command(
            "commands.chat.undo:undo",
            "Undo the last prompt: its messages and the files that it changed.",
            ("moot chat undo 1", "moot chat undo 1 --files --yes"),
        ),
        "redo": command("commands.chat.undo:redo", "Redo what was undone.", ("moot chat redo 1 --yes",)),
        "archive": command(
            "commands.chat.changes:archive",
            "Hide a conversation from the list, or show it again.",
            ("moot chat archive 1", "moot chat archive 0193a4 --undo"),
        ),
        "pin": command("commands.chat.changes:pin", "Pin a conversation to the top of the list.", ("moot chat pin 1",)),
        "unpin": command("commands.chat.changes:unpin", "Unpin a conversation.", ("moot chat unpin 1",)),
        "tag": command(
            "commands.chat.changes:tag",
            "Show, add or remove the tags of a conversation.",
            ("moot chat tag 1", "moot chat tag 1 release draft", "moot chat tag 1 draft --remove"),
        ),
        "delete": command(
            "commands.chat.changes:delete",
            "Delete a conversation or some of its messages.",
            ("moot chat delete 0193a4", "moot chat delete 1 --message 3 --message 4"),
            details="Use 'moot chat restore' to undo this, or 'moot purge' to delete permanently.",
        ),
        "restore": command(
            "commands.chat.changes:restore",
            "Restore a deleted conversation or message.",
            ("moot chat restore 0193a4", "moot chat restore 1 --message 3"),
        ),
        "resume": command("commands.chat.runs:resume", "Resume an interrupted or waiting run.", ("moot chat resume 1",)),
        "attach": command(
            "commands.chat.runs:attach",
            "Follow a conversation's live run, even if it runs in another process.",
            ("moot chat attach 1",),
            details="Ctrl+C detaches; the run continues.",
        ),
        "compare": command(
            "commands.history.replay:compare", "Compare the messages and the usage of two conversations.", ("moot chat compare 1 2",)
        ),
        "stop": command(
            "commands.chat.runs:stop", "Stop a conversation's run and its sub-agents, even in other processes.", ("moot chat stop 1",)
        ),
    },
    (
        'moot chat new "let us plan the release"',
        "moot chat list",
        "moot chat continue 3 and now the tests",
        "moot chat show 1 --limit 10",
    ),
)
