"""The tree of commands, from which the parser, help pages and completion are made. Commands are imported when they are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Command:
    """One command of the command line."""

    path: str
    """`module:function`. Its arguments are declared with `Annotated[…, Parameter(…)]` (moot.cli.arguments.signatures)."""
    help: str
    """One imperative sentence."""
    examples: tuple[str, ...]
    """Whole command lines, at least one."""
    details: str = ""
    """Another paragraph for the command's own help page."""
    bare: bool = False
    """True for a plain function that needs neither the event loop nor the log, and is called without importing them."""


@dataclass(frozen=True, slots=True)
class Group:
    """Commands that share a first word."""

    help: str
    commands: Mapping[str, Command | Group]
    examples: tuple[str, ...]
    details: str = ""
    sections: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Headings for the list of commands. Empty means a single list."""
    options: tuple[tuple[str, str], ...] = ()
    """Options of the group without a command, as rows of the help page. Empty means that it only shows its help."""


def _command(path: str, help: str, examples: tuple[str, ...], *, details: str = "", bare: bool = False) -> Command:
    """Return a command whose path is relative to `moot.cli`."""
    return Command(f"moot.cli.{path}", help, examples, details, bare)


CHAT = Group(
    "Start, continue and manage conversations.",
    {
        "new": _command("commands.chat.runs:new", "Start a conversation.", ('moot chat new "let us plan the release"',)),
        "continue": _command(
            "commands.chat.runs:continue_",
            "Continue a conversation.",
            ("moot chat continue 3 and now the tests", "moot chat continue 3 --again"),
            details="Without a prompt, answer the last message if it is a user message. On a terminal, keep the conversation open.",
        ),
        "list": _command(
            "commands.chat.list:list_",
            "List conversations, most recent activity first.",
            ("moot chat list", "moot chat list release --here"),
            details="On a terminal, choose a conversation to continue, edit or delete.",
            bare=True,
        ),
        "show": _command(
            "commands.chat.show:show",
            "Show the messages of a conversation.",
            ("moot chat show 1", "moot chat show 1 --limit 10", "moot chat show 1 --at 4", "moot chat show 1 --raw"),
        ),
        "edit": _command(
            "edits.edit:edit",
            "Edit messages in your editor.",
            ("moot chat edit 1", "moot chat edit 1 4 --no-answer", "moot chat edit 1 --all"),
            details="The original messages are kept on another branch.",
        ),
        "tree": _command("commands.chat.show:tree", "Show all messages of a conversation as a tree of branches.", ("moot chat tree 1",)),
        "switch": _command("commands.chat.changes:switch", "Switch a conversation to another branch.", ("moot chat switch 1 4",)),
        "fork": _command(
            "commands.chat.changes:fork", "Start a new conversation with a copy of another, up to a message.", ("moot chat fork 1 4",)
        ),
        "rename": _command("commands.chat.changes:rename", "Set the title of a conversation.", ("moot chat rename 1 release plans",)),
        "archive": _command(
            "commands.chat.changes:archive",
            "Hide a conversation from the list, or show it again.",
            ("moot chat archive 1", "moot chat archive 0193a4 --undo"),
        ),
        "delete": _command(
            "commands.chat.changes:delete",
            "Delete a conversation or some of its messages.",
            ("moot chat delete 0193a4", "moot chat delete 1 --message 3 --message 4"),
            details="'moot chat restore' undoes it. 'moot purge' deletes permanently.",
        ),
        "restore": _command(
            "commands.chat.changes:restore",
            "Restore a deleted conversation or message.",
            ("moot chat restore 0193a4", "moot chat restore 1 --message 3"),
        ),
        "resume": _command("commands.chat.runs:resume", "Resume an interrupted or waiting run.", ("moot chat resume 1",)),
        "attach": _command(
            "commands.chat.runs:attach",
            "Follow a live run of any process.",
            ("moot chat attach 1",),
            details="Ctrl+C detaches; the run continues.",
        ),
        "compare": _command(
            "commands.history.replay:compare", "Compare the messages and the usage of two conversations.", ("moot chat compare 1 2",)
        ),
        "stop": _command("commands.chat.runs:stop", "Stop a conversation's run in whichever process it runs.", ("moot chat stop 1",)),
    },
    (
        'moot chat new "let us plan the release"',
        "moot chat list",
        "moot chat continue 3 and now the tests",
        "moot chat show 1 --limit 10",
    ),
)

PROJECTS = Group(
    "Manage projects: folders of conversations with shared context and rules.",
    {
        "list": _command("commands.history.projects:list_", "List projects by name.", ("moot projects list",)),
        "show": _command("commands.history.projects:show", "Show a project.", ("moot projects show default",)),
        "add": _command(
            "commands.history.projects:add",
            "Create a project.",
            ("moot projects add shop --root ~/shop", 'moot projects add thesis --context "About bees." --rules "Cite every claim."'),
        ),
        "edit": _command(
            "commands.history.projects:edit",
            "Change the given settings of a project.",
            ('moot projects edit shop --rules "No new tables."',),
        ),
    },
    ("moot projects list", "moot projects add shop --root ~/shop"),
)

CONFIG = Group(
    "Show and change the configuration.",
    {
        "show": _command(
            "commands.maintenance.config:show", "Show the effective settings, with secrets masked.", ("moot config show --origin",)
        ),
        "get": _command("commands.maintenance.config:get", "Show one effective setting.", ("moot config get models.main",)),
        "set": _command(
            "commands.maintenance.config:set_",
            "Set a value in your configuration file.",
            ("moot config set models.main small@ollama", "moot config set limits.steps 20"),
            details="Comments in the file are kept.",
        ),
        "edit": _command("commands.maintenance.config:edit", "Edit and check your configuration file.", ("moot config edit",)),
        "check": _command(
            "commands.maintenance.config:check",
            "Check the configuration.",
            ("moot config check",),
            details="Errors are printed with file, line and column; without errors nothing is printed.",
        ),
    },
    ("moot config show --origin", "moot config set models.main small@ollama"),
)

MODELS = Group(
    "List, download, choose and test models.",
    {
        "list": _command(
            "commands.agents:list_models",
            "List the models of all available providers.",
            ("moot models list", "moot models list ollama --json"),
        ),
        "pull": _command(
            "commands.agents:pull_model",
            "Download the weights of an embedded model.",
            ("moot models pull",),
            details="Size, license and source are shown before the download starts.",
        ),
        "choose": _command(
            "commands.agents:choose_main_model",
            "Choose the main model.",
            ("moot models choose", "moot models choose --yes"),
            details="The available models are listed, and your choice is tested before it is saved.",
        ),
        "test": _command(
            "commands.agents:test_model", "Test a model with a short prompt.", ("moot models test claude-sonnet-4-5@anthropic",)
        ),
    },
    ("moot models list", "moot models choose"),
)

PROVIDERS = Group(
    "List and test model providers.",
    {
        "list": _command(
            "commands.agents:list_providers",
            "List providers and what each one is missing.",
            ("moot providers list",),
            details="The order is the one in which a model name without a provider is looked up.",
        ),
        "test": _command("commands.agents:test_provider", "Test a provider with a short prompt.", ("moot providers test ollama",)),
    },
    ("moot providers list", "moot providers test ollama"),
)

TOOLS = Group(
    "List and show tools.",
    {
        "list": _command("commands.tools:list_tools", "List tools and whether they are available.", ("moot tools list",)),
        "show": _command("commands.tools:show_tool", "Show a tool's description and schema.", ("moot tools show read_file",)),
    },
    ("moot tools list", "moot tools show read_file"),
)

CHANNELS = Group(
    "List and serve channels, where people talk to moot from other programs.",
    {
        "list": _command("commands.server:list_channels", "List channels and the packages that provide them.", ("moot channels list",)),
        "serve": _command("commands.server:run_channel", "Serve a channel until stopped.", ("moot channels serve lines",)),
    },
    ("moot channels list", "moot channels serve lines"),
)

AGENTS = Group(
    "List, add and test agents.",
    {
        "list": _command(
            "commands.agents:list_agents",
            "List your agents and the installed outside agents.",
            ("moot agents list", "moot agents list --all"),
        ),
        "show": _command("commands.agents:show_agent", "Show the settings of an agent.", ("moot agents show default",)),
        "test": _command(
            "commands.agents:test_agent",
            "Test an agent with a short prompt.",
            ("moot agents test codex",),
            details="The test run is not stored.",
        ),
        "add": _command(
            "commands.agents:add_agent",
            "Add an agent to your configuration.",
            ('moot agents add reviewer --model small --instructions "Review what I show you."', "moot agents add mine -- my-agent --acp"),
        ),
    },
    ("moot agents list", "moot agents test codex"),
)

COMPLETION = Group(
    "Set up shell completion.",
    {
        "install": _command(
            "commands.maintenance.completion:install",
            "Install the completion script for your shell.",
            ("moot completion install", "moot completion install zsh"),
            bare=True,
        ),
        "show": _command(
            "commands.maintenance.completion:show", "Print the completion script of a shell.", ("moot completion show bash",), bare=True
        ),
        "words": _command(
            "commands.maintenance.completion:words",
            "Print the completions of a command line. Used by the completion scripts.",
            ('moot completion words bash "moot chat "',),
            bare=True,
        ),
    },
    ("moot completion install", "moot completion show bash"),
)

PERMISSIONS = Group(
    "List, test and remove permission rules.",
    {
        "list": _command(
            "commands.tools:list_rules",
            "List permission rules and where each one is defined.",
            ("moot permissions list", "moot permissions list --conversation 1"),
        ),
        "test": _command(
            "commands.tools:test_rule",
            "Show whether a tool call would be allowed, and by which rule.",
            ('moot permissions test shell "git push; ls"',),
        ),
        "remove": _command(
            "commands.tools:remove_rule",
            "Remove a rule from your configuration or a grant from a conversation.",
            ('moot permissions remove shell "git status *"',),
        ),
    },
    ("moot permissions list", 'moot permissions test shell "git push; ls"'),
)

TOKENS = Group(
    "Manage the access tokens of the server.",
    {
        "list": _command("commands.tokens:list_tokens", "List active tokens.", ("moot tokens list", "moot tokens list --all")),
        "create": _command(
            "commands.tokens:create_token",
            "Create a token and print its secret.",
            ("moot tokens create laptop", "moot tokens create ci --scopes read --user mara --expires 30d"),
            details="The secret is not stored and cannot be shown again.",
        ),
        "revoke": _command("commands.tokens:revoke_token", "Revoke a token.", ("moot tokens revoke laptop",)),
    },
    ("moot tokens list", "moot tokens create laptop"),
)

STORE = Group(
    "Show the size of the database and compact it.",
    {
        "stats": _command(
            "commands.maintenance.store:store_stats",
            "Show disk usage by table and conversation.",
            ("moot store stats", "moot store stats --limit 3", "moot store stats --json"),
        ),
        "compact": _command(
            "commands.maintenance.store:compact",
            "Compress finished conversations and shrink the database file.",
            ("moot store compact", "moot store compact --dry-run", "moot store compact --all"),
        ),
    },
    ("moot store stats", "moot store compact --dry-run"),
)

TREE = Group(
    "One home for every AI agent's conversations.",
    {
        "run": _command(
            "run:run",
            "Run one prompt and print the answer.",
            (
                'moot run "what does README.md say?"',
                'git diff | moot run "write a commit message" -m small',
                'moot run -c "and now the tests" --json',
                'moot run --reply "shorter, please"',
                'moot run --schema answer.json -f photo.png "what is on it?"',
            ),
        ),
        "chat": CHAT,
        "ps": _command("commands.chat.runs:ps", "List live runs of all processes.", ("moot ps", "moot ps --watch", "moot ps --json")),
        "stats": _command(
            "commands.history.stats:stats",
            "Show token usage and cost.",
            ("moot stats", "moot stats --by model --days 7", "moot stats -c 1", "moot stats --json"),
        ),
        "search": _command(
            "commands.history.search:search",
            "Search the messages of all conversations.",
            (
                "moot search exit code",
                "moot search '\"exit code\" role:user after:7d'",
                "moot search pantry -c 1",
                "moot search 'migration -draft agent:codex' --best",
                "moot search --meaning what was that about the container that kept restarting",
            ),
            details='A query has words, "phrases", excluded -words, and filters: role: agent: model: project: in: has: after: before: '
            "cost: status:",
            bare=True,
        ),
        "verify": _command(
            "commands.maintenance.verify:verify",
            "Verify stored conversations against their checksums and raw data.",
            ("moot verify", "moot verify 1", "moot verify --all --json", "moot verify --upgrade --all --dry-run"),
            details="Exit code 1 means that something differs.",
        ),
        "backup": _command(
            "commands.maintenance.store:backup",
            "Back up all data to one file.",
            ("moot backup", "moot backup /mnt/disk/moot.backup", "moot backup --check moot.backup"),
            details="moot may be in use during the backup. The file is verified after it is written.",
        ),
        "restore": _command(
            "commands.maintenance.store:restore",
            "Restore all data from a backup.",
            ("moot restore moot.backup", "moot restore moot.backup --into ~/another", "moot restore moot.backup --replace"),
            details="Nothing is changed if the restore fails. A directory with data is only replaced with --replace.",
        ),
        "purge": _command(
            "commands.maintenance.purge:purge",
            "Permanently delete conversations and print a receipt.",
            ("moot purge 0193a4", "moot purge --deleted --dry-run", "moot purge --before 2025-01-31 --yes", "moot purge --expired"),
        ),
        "redact": _command(
            "commands.maintenance.purge:redact",
            "Permanently remove strings from all stored data.",
            ("moot redact", "moot redact --from secrets.txt --yes", "moot redact -c 1 --regex 'sk-[A-Za-z0-9]{20,64}' --dry-run"),
        ),
        "import": _command(
            "commands.history.import_:import_",
            "Import conversations from other agents and programs.",
            (
                "moot import --all",
                "moot import --all --watch",
                "moot import ~/backup/claude export.zip",
                "moot import ~/.tailored-ai --configuration found.yaml",
                "moot import capture.jsonl -f recording --agent-type codex",
            ),
            details="Importing again adds only what is new.",
        ),
        "replay": _command(
            "commands.history.replay:replay",
            "Replay a conversation with its original timing.",
            ("moot replay 1", "moot replay 1 --speed 4", "moot replay 1 --rerun", "moot replay 1 --rerun --model small@ollama"),
        ),
        "share": _command(
            "commands.history.export:share",
            "Share a conversation as a read-only page on your server.",
            ("moot share 1", "moot share 1 --expires 12h --preview page.html", "moot share --list", "moot share --revoke 019a"),
            details="Secrets, home directories, names and e-mail addresses are removed from the page.",
        ),
        "export": _command(
            "commands.history.export:export",
            "Export conversations to a file.",
            (
                "moot export 1 -f md",
                "moot export 1 -f html --share -o talk.html",
                "moot export 1 -f claude --install",
                "moot export --all -f md -o backup",
            ),
        ),
        "models": MODELS,
        "providers": PROVIDERS,
        "tools": TOOLS,
        "channels": CHANNELS,
        "agents": AGENTS,
        "projects": PROJECTS,
        "permissions": PERMISSIONS,
        "serve": _command(
            "commands.server:serve",
            "Start the server for the web page and the HTTP API.",
            ("moot serve", "moot serve --port 4748", "moot serve --host 0.0.0.0 --allow-remote"),
        ),
        "web": _command(
            "commands.server:web",
            "Open the web page in your browser.",
            ("moot web", "moot web --no-open"),
            details="If no server is running, start one; it runs until Ctrl+C.",
        ),
        "tokens": TOKENS,
        "store": STORE,
        "config": CONFIG,
        "logs": _command("commands.maintenance.logs:logs", "Show moot's log.", ("moot logs -n 20", "moot logs --follow"), bare=True),
        "completion": COMPLETION,
        "doctor": _command(
            "commands.maintenance.doctor:doctor",
            "Check the installation and configuration.",
            ("moot doctor", "moot doctor --json"),
            details="Exit code 1 means that something is broken.",
        ),
        "version": _command(
            "commands.maintenance.version:version", "Show the version.", ("moot version", "moot version --json"), bare=True
        ),
    },
    ("moot", "moot --yes", 'moot run "what does README.md say?"', "moot chat continue 1"),
    details="Without a command, start a conversation in this terminal.",
    sections={
        "Chat": ("run", "chat", "ps"),
        "History": ("search", "stats", "import", "export", "share", "replay", "projects"),
        "Agents and models": ("agents", "models", "providers", "tools", "permissions", "channels"),
        "Server": ("serve", "web", "tokens"),
        "Maintenance": ("config", "doctor", "logs", "verify", "backup", "restore", "purge", "redact", "store", "completion", "version"),
    },
    options=(("-y, --yes", "Don't prompt: use the first available model, downloading it if needed."), ("--version", "Show the version.")),
)
