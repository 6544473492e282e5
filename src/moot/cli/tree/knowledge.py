"""The commands of memory and knowledge."""

from __future__ import annotations

from moot.cli.tree.nodes import Group, command

MEMORY = Group(
    "List, show, edit and search memory: Markdown files that agents keep between conversations.",
    {
        "list": command(
            "commands.memory:list_files",
            "List the files that agents in this directory get: memory, AGENTS.md and CLAUDE.md.",
            ("moot memory list", "moot memory list --json"),
            details="The nearest file is last. Files with hidden characters are marked.",
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
    options=(("--json", "Print one JSON document to stdout."),),
    default="list",
)

KNOWLEDGE = Group(
    "Add, list and search documents that agents may search.",
    {
        "list": command(
            "commands.knowledge:list_sources", "List document sources.", ("moot knowledge list", "moot knowledge list --documents")
        ),
        "add": command(
            "commands.knowledge:add_sources",
            "Add files or folders and index them.",
            ("moot knowledge add ~/papers", "moot knowledge add report.pdf --project shop"),
            details="Text, PDF, DOCX, XLSX, PPTX, HTML and EPUB are read. The files stay where they are. The next search finds changes.",
        ),
        "search": command(
            "commands.knowledge:search_documents",
            "Search documents by words and, if the embedding model is installed, by meaning.",
            ("moot knowledge search notice period", "moot knowledge search --project shop return policy"),
        ),
        "refresh": command("commands.knowledge:refresh_sources", "Index new and changed documents.", ("moot knowledge refresh",)),
        "remove": command(
            "commands.knowledge:remove_source", "Remove a source from the index. Its files are kept.", ("moot knowledge remove ~/papers",)
        ),
    },
    ("moot knowledge add ~/papers", "moot knowledge search notice period"),
)
