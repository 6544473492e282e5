"""The commands for the user's work: `moot chat`, `tasks`, `worktrees`, `cron`, `memory` and `knowledge`."""

from __future__ import annotations

from moot.cli.tree.nodes import Group, command

CHAT = Group(
    "Start, continue and manage conversations.",
    {
        "new": command(
            "commands.chat.runs:new", "Start a conversation.", ('moot chat new "let us plan the release"',), stays=True, remote=True
        ),
        "continue": command(
            "commands.chat.runs:continue_",
            "Continue a conversation.",
            ("moot chat continue 3 and now the tests", "moot chat continue 3 --again"),
            details="Without a prompt, answer the last message if it is a user message. In a terminal, keep the conversation open.",
            stays=True,
            remote=True,
        ),
        "list": command(
            "commands.chat.list:list_",
            "List conversations, most recent activity first.",
            ("moot chat list", "moot chat list release --here"),
            details="In a terminal, choose a conversation to continue, edit or delete.",
            bare=True,
            remote=True,
        ),
        "show": command(
            "commands.chat.show:show",
            "Show the messages of a conversation.",
            ("moot chat show 1", "moot chat show 1 --limit 10", "moot chat show 1 --at 4", "moot chat show 1 --raw"),
            remote=True,
        ),
        "edit": command(
            "commands.chat.edit:edit",
            "Edit messages in your editor.",
            ("moot chat edit 1", "moot chat edit 1 4 --no-answer", "moot chat edit 1 --all"),
            details="The original messages are kept on another branch.",
        ),
        "tree": command(
            "commands.chat.show:tree", "Show all messages of a conversation as a tree of branches.", ("moot chat tree 1",), remote=True
        ),
        "switch": command(
            "commands.chat.changes:switch", "Switch a conversation to another branch.", ("moot chat switch 1 4",), remote=True
        ),
        "fork": command(
            "commands.chat.changes:fork",
            "Copy a conversation, or its messages up to a given one, to a new conversation.",
            ("moot chat fork 1 4",),
            remote=True,
        ),
        "rename": command(
            "commands.chat.changes:rename", "Set the title of a conversation.", ("moot chat rename 1 release plans",), remote=True
        ),
        "settings": command(
            "commands.chat.changes:settings",
            "Show or change the settings of a conversation.",
            ("moot chat settings 1", "moot chat settings 1 mode=edits effort=high", "moot chat settings 1 mode="),
            details="The settings apply to every prompt that doesn't override them. Slash commands such as '/mode' change them too.",
        ),
        "context": command(
            "commands.chat.context:context", "Show what takes up the context of the next request.", ("moot chat context 1",)
        ),
        "compact": command(
            "commands.chat.context:compact", "Summarize the older messages of a conversation.", ('moot chat compact 1 --focus "the API"',)
        ),
        "undo": command(
            "commands.chat.undo:undo",
            "Undo the last prompt: its messages and the files that it changed.",
            ("moot chat undo 1", "moot chat undo 1 --files --yes"),
        ),
        "redo": command("commands.chat.undo:redo", "Redo the last undo.", ("moot chat redo 1 --yes",)),
        "archive": command(
            "commands.chat.changes:archive",
            "Hide a conversation from the list, or show it again.",
            ("moot chat archive 1", "moot chat archive 0193a4 --undo"),
            remote=True,
        ),
        "pin": command("commands.chat.changes:pin", "Pin a conversation to the top of the list.", ("moot chat pin 1",), remote=True),
        "unpin": command("commands.chat.changes:unpin", "Unpin a conversation.", ("moot chat unpin 1",), remote=True),
        "tag": command(
            "commands.chat.changes:tag",
            "Show, add or remove the tags of a conversation.",
            ("moot chat tag 1", "moot chat tag 1 release draft", "moot chat tag 1 draft --remove"),
            remote=True,
        ),
        "delete": command(
            "commands.chat.changes:delete",
            "Delete a conversation or some of its messages.",
            ("moot chat delete 0193a4", "moot chat delete 1 --message 3 --message 4"),
            details="Use 'moot chat restore' to undo this, or 'moot purge' to delete permanently.",
            remote=True,
        ),
        "restore": command(
            "commands.chat.changes:restore",
            "Restore a deleted conversation or message.",
            ("moot chat restore 0193a4", "moot chat restore 1 --message 3"),
            remote=True,
        ),
        "resume": command("commands.chat.runs:resume", "Resume an interrupted or waiting run.", ("moot chat resume 1",), remote=True),
        "attach": command(
            "commands.chat.runs:attach",
            "Follow a conversation's live run, even if it runs in another process.",
            ("moot chat attach 1",),
            details="Ctrl+C detaches; the run continues.",
            remote=True,
        ),
        "compare": command(
            "commands.history.replay:compare", "Compare the messages and the usage of two conversations.", ("moot chat compare 1 2",)
        ),
        "stop": command(
            "commands.chat.runs:stop",
            "Stop a conversation's run and its sub-agents, even in other processes.",
            ("moot chat stop 1",),
            remote=True,
        ),
    },
    (
        'moot chat new "let us plan the release"',
        "moot chat list",
        "moot chat continue 3 and now the tests",
        "moot chat show 1 --limit 10",
    ),
)


_PROJECT = "Without --project, this applies to the current directory's project."

TASKS = Group(
    "List, add and change tasks: work items in projects.",
    {
        "list": command(
            "commands.tasks:list_tasks",
            "List tasks by status.",
            ("moot tasks list", "moot tasks list --status in_review --tag ui", "moot tasks list login --project shop --json"),
            details="Archived tasks are listed only with --status archived.",
        ),
        "add": command(
            "commands.tasks:add_task",
            "Add a task.",
            ('moot tasks add "Fix the login"', 'moot tasks add "Write the docs" --tag docs --due 2026-12-24 --assignee writer'),
            details=_PROJECT,
        ),
        "show": command(
            "commands.tasks:show_task",
            "Show a task with its comments and history.",
            ("moot tasks show 12", "moot tasks show 12 --project shop --json"),
            details=_PROJECT,
        ),
        "edit": command(
            "commands.tasks:edit_task",
            "Change a task.",
            ('moot tasks edit 12 --title "Fix the sign-in"', 'moot tasks edit 12 --tag ui --tag bug --due ""'),
            details=_PROJECT,
        ),
        "move": command(
            "commands.tasks:move_task",
            "Change the status of tasks.",
            ("moot tasks move 12 in_review", "moot tasks move 12 13 14 done"),
            details=_PROJECT,
        ),
        "comment": command(
            "commands.tasks:comment_on_task",
            "Comment on a task.",
            ('moot tasks comment 12 "It fails on Tuesdays."',),
            details=_PROJECT,
        ),
        "remove": command(
            "commands.tasks:remove_task",
            "Permanently remove a task with its comments.",
            ("moot tasks remove 12", "moot tasks remove 12 --yes"),
            details=_PROJECT,
        ),
    },
    ("moot tasks", 'moot tasks add "Fix the login"', "moot tasks move 12 done"),
    details="Without a command, list the tasks of the current directory's project.",
    options=("--json",),
    default="list",
)

WORKTREES = Group(
    "List, compare and remove the git worktrees in which agents work.",
    {
        "list": command("commands.worktrees:list_worktrees", "List worktrees.", ("moot worktrees list",)),
        "diff": command("commands.worktrees:diff_worktree", "Print the changes in a worktree.", ("moot worktrees diff parser",)),
        "remove": command(
            "commands.worktrees:remove_worktree",
            "Remove a worktree.",
            ("moot worktrees remove parser", "moot worktrees remove parser --force"),
            details="Without '--force', a worktree with uncommitted changes is kept. Commits stay on its branch in any case.",
        ),
    },
    ("moot run --worktree=parser 'rewrite the parser'", "moot worktrees diff parser", "git merge moot/parser"),
    details="Worktrees are stored in the repository's .worktrees folder.",
)


CRON = Group(
    "Run prompts on a schedule.",
    {
        "add": command(
            "commands.cron:add_job",
            "Add a cron job.",
            (
                'moot cron add standup --cron "0 9 * * 1-5" --prompt "What changed since yesterday?"',
                'moot cron add check --every 30m --prompt "Is the build green?" --agent reviewer --delivery tool',
                'moot cron add party --at 2026-12-24T18:00 --tz Europe/Berlin --prompt "Send my wishes."',
            ),
            details="Jobs run while `moot serve` is running. A running server applies changes immediately.",
        ),
        "list": command("commands.cron:list_jobs", "List jobs with their next and last runs.", ("moot cron list", "moot cron list --json")),
        "show": command("commands.cron:show_job", "Show the settings, next run and last run of a job.", ("moot cron show standup",)),
        "next": command("commands.cron:next_times", "Show the next scheduled times of a job.", ("moot cron next standup -n 10",)),
        "run": command(
            "commands.cron:run_job",
            "Run a job now and show the answer.",
            ("moot cron run standup",),
            details="The run appears in the job's history, and its answer is delivered like that of a scheduled run.",
        ),
        "pause": command("commands.cron:pause_job", "Pause a job.", ("moot cron pause standup",)),
        "resume": command("commands.cron:resume_job", "Resume a paused job.", ("moot cron resume standup",)),
        "remove": command(
            "commands.cron:remove_job", "Remove a job. Its history and conversations are kept.", ("moot cron remove standup",)
        ),
        "history": command(
            "commands.cron:history",
            "Show the runs of one job or of all jobs, newest first.",
            ("moot cron history standup", "moot cron history --json"),
        ),
    },
    ('moot cron add standup --cron "0 9 * * 1-5" --prompt "What changed since yesterday?"', "moot cron list"),
)


MEMORY = Group(
    "List, show, edit and search memory: Markdown files that agents keep between conversations.",
    {
        "list": command(
            "commands.memory:list_files",
            "List the memory and instruction files (AGENTS.md, CLAUDE.md) that agents use in this directory.",
            ("moot memory list", "moot memory list --json"),
            details="The files closest to this directory are listed last. Files with hidden characters are marked.",
        ),
        "show": command("commands.memory:show_file", "Show a memory file.", ("moot memory show home/MEMORY.md",)),
        "edit": command(
            "commands.memory:edit_file",
            "Edit a memory file in your editor.",
            ("moot memory edit home/MEMORY.md", "moot memory edit agents/reviewer/MEMORY.md", "moot memory edit project/notes.md"),
            details="A missing file is created.",
        ),
        "search": command("commands.memory:search_files", "Search the lines of all memory files.", ("moot memory search release",)),
        "delete": command("commands.memory:delete_file", "Delete a memory file.", ("moot memory delete project/notes.md --yes",)),
    },
    ("moot memory", "moot memory edit home/MEMORY.md"),
    details="Without a command, list the files.",
    options=("--json",),
    default="list",
)

KNOWLEDGE = Group(
    "Add, list and search documents. Agents can search them too.",
    {
        "list": command(
            "commands.knowledge:list_sources",
            "List the files and folders that were added.",
            ("moot knowledge list", "moot knowledge list --documents"),
        ),
        "add": command(
            "commands.knowledge:add_sources",
            "Add files or folders and index them.",
            ("moot knowledge add ~/papers", "moot knowledge add report.pdf --project shop"),
            details="Supports text, PDF, DOCX, XLSX, PPTX, HTML and EPUB. If the files change, the next search indexes them again.",
        ),
        "search": command(
            "commands.knowledge:search_documents",
            "Search documents by words and, if the embedding model is installed, by meaning.",
            ("moot knowledge search notice period", "moot knowledge search --project shop return policy"),
        ),
        "refresh": command("commands.knowledge:refresh_sources", "Index new and changed documents.", ("moot knowledge refresh",)),
        "remove": command(
            "commands.knowledge:remove_source",
            "Remove a file or folder from the index. The files themselves are kept.",
            ("moot knowledge remove ~/papers",),
        ),
    },
    ("moot knowledge add ~/papers", "moot knowledge search notice period"),
)
