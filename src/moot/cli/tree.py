"""The tree of commands: the one list that the parser, help, completion and the tests read. Nothing is imported until it is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """Where a command is, and its help."""

    path: str
    """`module:function`; its arguments say in `Annotated[…, Parameter(…)]` (moot.cli.parameters) how they are typed."""
    words: str
    """One line, as in the list of commands."""
    examples: tuple[str, ...]
    """Whole command lines, at least one."""
    bare: bool = False
    """A plain function that needs neither the event loop nor the log: it is called without importing them."""

    def help(self) -> str:
        return "\n".join([self.words, "", "For instance:", *(f"  {example}" for example in self.examples)])


@dataclass(frozen=True, slots=True)
class Group:
    """Commands with a word in common."""

    words: str
    commands: Mapping[str, Command | Group]
    examples: tuple[str, ...] = ()

    def help(self) -> str:
        names = "" if not self.commands or self is TREE else f": {', '.join(self.commands)}"
        instances = ["", "For instance:", *(f"  {example}" for example in self.examples)] if self.examples else []
        return "\n".join([f"{self.words}{names}.", *instances])


CHAT = Group(
    "Conversations",
    {
        "new": Command("moot.cli.chat_running:new", "Begins a conversation.", ('moot chat new "let us plan the release"',)),
        "continue": Command("moot.cli.chat_running:continue_", "Goes on with a conversation.", ('moot chat continue 1 "and the tests?"',)),
        "resume": Command(
            "moot.cli.chat_running:resume", "Takes up an interrupted or waiting run, and shows all of it.", ("moot chat resume 1",)
        ),
        "list": Command("moot.cli.chat_reading:list_", "All conversations, newest activity first.", ("moot chat list --limit 10",)),
        "show": Command("moot.cli.chat_reading:show", "The messages of a conversation.", ("moot chat show 1",)),
        "stop": Command("moot.cli.chat_reading:stop", "Stops a conversation's run, wherever it runs.", ("moot chat stop 1",)),
        "delete": Command(
            "moot.cli.chat_reading:delete", "Marks a conversation deleted; nothing of it is lost.", ("moot chat delete 0193a4",)
        ),
        "restore": Command("moot.cli.chat_reading:restore", "Brings a deleted conversation back.", ("moot chat restore 0193a4",)),
    },
)

CONFIG = Group(
    "The configuration",
    {
        "show": Command("moot.cli.config:show", "Every setting in force, secrets masked.", ("moot config show --origin",)),
        "check": Command(
            "moot.cli.config:check",
            "Whether the configuration is right: silent when it is, else file, line and column of every fault.",
            ("moot config check",),
        ),
    },
)

MODELS = Group(
    "Models",
    {
        "list": Command(
            "moot.cli.models:list_",
            "The models of every provider that can be reached.",
            ("moot models list", "moot models list ollama --json"),
        ),
        "pull": Command(
            "moot.cli.models:pull",
            "Fetches the weights of an embedded model, after saying what, how much, under which licence and from whom.",
            ("moot models pull",),
        ),
        "test": Command("moot.cli.models:test", "Asks a model for one word.", ("moot models test claude-sonnet-4-5@anthropic",)),
    },
)

PROVIDERS = Group(
    "Providers",
    {
        "list": Command(
            "moot.cli.providers:list_",
            "Every provider, in the order in which a bare model name is looked up, and what it lacks.",
            ("moot providers list",),
        ),
        "test": Command("moot.cli.providers:test", "Asks a provider's model for one word.", ("moot providers test ollama",)),
    },
)

TOOLS = Group(
    "Tools",
    {
        "list": Command("moot.cli.tools:list_", "Every tool, and whether it can be used here.", ("moot tools list",)),
        "show": Command("moot.cli.tools:show", "What a model is told of a tool.", ("moot tools show read_file",)),
    },
)

TREE = Group(
    "One home for every AI agent's conversations",
    {
        "run": Command(
            "moot.cli.run:run",
            "One prompt to its answer.",
            (
                'moot run "what does README.md say?"',
                'git diff | moot run "write a commit message" -m small',
                'moot run -c "and now the tests" --json',
                'moot run --schema answer.json -f photo.png "what is on it?"',
            ),
        ),
        "chat": CHAT,
        "search": Command(
            "moot.cli.search:search", "Finds words in all conversations, newest first.", ('moot search "exit code" --limit 10',)
        ),
        "models": MODELS,
        "providers": PROVIDERS,
        "tools": TOOLS,
        "config": CONFIG,
        "doctor": Command(
            "moot.cli.doctor:doctor", "Is everything in order? Exit code 1 when something is broken.", ("moot doctor", "moot doctor --json")
        ),
        "version": Command("moot.cli.version:version", "moot's version.", ("moot version", "moot version --json"), bare=True),
    },
    ('moot run "what does README.md say?"',),
)
