"""The commands of `moot memory` and `moot knowledge`."""

from __future__ import annotations

from moot.cli.tree.nodes import Group, command

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
