"""The tree of commands: the one list that the parser, help, completion and the tests read. Nothing is imported until it is called."""

from __future__ import annotations

from moot.cli.command import Command, Group

CHAT = Group(
    "Conversations",
    {
        "new": Command("moot.cli.chat.running:new", "Begins a conversation.", ('moot chat new "let us plan the release"',)),
        "continue": Command(
            "moot.cli.chat.running:continue_",
            "Goes on with a conversation; without a prompt it answers the last one.",
            ("moot chat continue 3 and now the tests", "moot chat continue 3 --again"),
        ),
        "list": Command(
            "moot.cli.chat.listing:list_",
            "Conversations, newest activity first.",
            ("moot chat list", "moot chat list release --here"),
            bare=True,
        ),
        "show": Command(
            "moot.cli.chat.reading:show",
            "The messages of a conversation.",
            ("moot chat show 1", "moot chat show 1 --limit 10", "moot chat show 1 --at 4", "moot chat show 1 --raw"),
        ),
        "edit": Command(
            "moot.cli.revising.editing:edit",
            "Changes a message, or all of a conversation, in your editor; the old words stay.",
            ("moot chat edit 1", "moot chat edit 1 4 --no-answer", "moot chat edit 1 --all"),
        ),
        "tree": Command("moot.cli.chat.reading:tree", "All messages of a conversation with its branches.", ("moot chat tree 1",)),
        "switch": Command(
            "moot.cli.chat.changing:switch", "Shows another branch of a conversation, and goes on with it.", ("moot chat switch 1 4",)
        ),
        "fork": Command("moot.cli.chat.changing:fork", "Copies a conversation up to a message into a new one.", ("moot chat fork 1 4",)),
        "rename": Command(
            "moot.cli.chat.changing:rename", "Gives a conversation a title that stays.", ("moot chat rename 1 release plans",)
        ),
        "archive": Command(
            "moot.cli.chat.changing:archive",
            "Takes a conversation out of the list, or puts it back.",
            ("moot chat archive 1", "moot chat archive 0193a4 --undo"),
        ),
        "delete": Command(
            "moot.cli.chat.changing:delete",
            "Marks a conversation or messages of it deleted; nothing is lost.",
            ("moot chat delete 0193a4", "moot chat delete 1 --message 3 --message 4"),
        ),
        "restore": Command(
            "moot.cli.chat.changing:restore",
            "Brings a deleted conversation or message back.",
            ("moot chat restore 0193a4", "moot chat restore 1 --message 3"),
        ),
        "resume": Command(
            "moot.cli.chat.running:resume", "Takes up an interrupted or waiting run, and shows all of it.", ("moot chat resume 1",)
        ),
        "attach": Command(
            "moot.cli.chat.attaching:attach", "Follows a live run of any process; leaving does not stop it.", ("moot chat attach 1",)
        ),
        "compare": Command(
            "moot.cli.comparing:compare",
            "Puts two conversations side by side: what differs, and what each took.",
            ("moot chat compare 1 2",),
        ),
        "stop": Command("moot.cli.chat.attaching:stop", "Stops a conversation's run, wherever it runs.", ("moot chat stop 1",)),
    },
    (
        'moot chat new "let us plan the release"',
        "moot chat list",
        "moot chat continue 3 and now the tests",
        "moot chat show 1 --limit 10",
    ),
)

PROJECTS = Group(
    "Projects: folders of conversations, and what agents are told in them",
    {
        "list": Command("moot.cli.projects:list_", "Projects by name.", ("moot projects list",)),
        "show": Command("moot.cli.projects:show", "All of a project.", ("moot projects show default",)),
        "add": Command(
            "moot.cli.projects:add",
            "Makes a project.",
            ("moot projects add shop --root ~/shop", 'moot projects add thesis --context "About bees." --rules "Cite every claim."'),
        ),
        "edit": Command(
            "moot.cli.projects:edit", "Changes what is given; the rest stays.", ('moot projects edit shop --rules "No new tables."',)
        ),
    },
)

CONFIG = Group(
    "The configuration",
    {
        "show": Command("moot.cli.config:show", "Every setting in force, secrets masked.", ("moot config show --origin",)),
        "get": Command("moot.cli.config:get", "One value in force.", ("moot config get models.main",)),
        "set": Command(
            "moot.cli.config:set_",
            "Writes one value into your file; comments stay.",
            ("moot config set models.main small@ollama", "moot config set limits.steps 20"),
        ),
        "edit": Command("moot.cli.config_editing:edit", "Opens your file in your editor, and checks it.", ("moot config edit",)),
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
        "choose": Command(
            "moot.cli.models:choose",
            "Shows what can be had here, tries what you choose, and makes it the main model.",
            ("moot models choose", "moot models choose --yes"),
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

CHANNELS = Group(
    "Channels",
    {
        "list": Command("moot.cli.channels:list_", "Every channel, and where it comes from.", ("moot channels list",)),
        "serve": Command("moot.cli.channels:serve", "Serves one channel until it is stopped.", ("moot channels serve lines",)),
    },
)

AGENTS = Group(
    "Agents",
    {
        "list": Command(
            "moot.cli.agents:list_",
            "Every agent that can be run here: yours, and outside agents that were found.",
            ("moot agents list", "moot agents list --all"),
        ),
        "show": Command("moot.cli.agents:show", "All settings of an agent.", ("moot agents show default",)),
        "test": Command("moot.cli.agent_trial:test", "Asks an agent for one word; nothing of it is kept.", ("moot agents test codex",)),
        "add": Command(
            "moot.cli.agents:add",
            "Writes an agent into your configuration.",
            ('moot agents add reviewer --model small --instructions "Review what I show you."', "moot agents add mine -- my-agent --acp"),
        ),
    },
)

COMPLETION = Group(
    "Completion in the shell",
    {
        "install": Command(
            "moot.cli.completing.commands:install",
            "Writes the script to where your shell looks for it.",
            ("moot completion install", "moot completion install zsh"),
            bare=True,
        ),
        "show": Command("moot.cli.completing.commands:show", "The script of a shell.", ("moot completion show bash",), bare=True),
        "words": Command(
            "moot.cli.completing.words:words",
            "What fits at the end of a command line; the scripts call it.",
            ('moot completion words bash "moot chat "',),
            bare=True,
        ),
    },
)

PERMISSIONS = Group(
    "Permissions",
    {
        "list": Command(
            "moot.cli.permissions:list_",
            "Every standing rule and where it was written.",
            ("moot permissions list", "moot permissions list --conversation 1"),
        ),
        "test": Command(
            "moot.cli.permissions:test",
            "What would happen to a call, and which rule decides it.",
            ('moot permissions test shell "git push; ls"',),
        ),
        "remove": Command(
            "moot.cli.permissions:remove",
            "Takes a rule out of your configuration, or back what was allowed in a conversation.",
            ('moot permissions remove shell "git status *"',),
        ),
    },
)

TOKENS = Group(
    "Tokens, which let programs and other people into a server",
    {
        "list": Command("moot.cli.tokens:list_", "Every token that lets somebody in.", ("moot tokens list", "moot tokens list --all")),
        "create": Command(
            "moot.cli.tokens:create",
            "Makes a token, and shows its secret this once.",
            ("moot tokens create laptop", "moot tokens create ci --scopes read --user mara --expires 30d"),
        ),
        "revoke": Command("moot.cli.tokens:revoke", "Takes a token back.", ("moot tokens revoke laptop",)),
    },
)

STORE = Group(
    "The database: what takes how much, and making it smaller",
    {
        "stats": Command(
            "moot.cli.storing:stats",
            "What takes how much: the log, sealed or not, messages, search, requests, files.",
            ("moot store stats", "moot store stats --limit 3", "moot store stats --json"),
        ),
        "compact": Command(
            "moot.cli.storing:compact",
            "Seals what is over and makes the file smaller.",
            ("moot store compact", "moot store compact --dry-run", "moot store compact --all"),
        ),
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
                'moot run --reply "shorter, please"',
                'moot run --schema answer.json -f photo.png "what is on it?"',
            ),
        ),
        "chat": CHAT,
        "ps": Command("moot.cli.ps:ps", "What runs now, in all processes.", ("moot ps", "moot ps --watch", "moot ps --json")),
        "stats": Command(
            "moot.cli.stats:stats",
            "What runs took: tokens and money, by day, model, agent or project.",
            ("moot stats", "moot stats --by model --days 7", "moot stats -c 1", "moot stats --json"),
        ),
        "search": Command(
            "moot.cli.search:search",
            "Finds messages in all conversations, newest or best first.",
            (
                "moot search exit code",
                "moot search '\"exit code\" role:user after:7d'",
                "moot search pantry -c 1",
                "moot search 'migration -draft agent:claude-code' --best --json",
                "moot search --meaning what was that about the container that kept restarting",
            ),
            bare=True,
        ),
        "verify": Command(
            "moot.cli.verifying:verify",
            "Is what is stored what it was? Exit code 1 when it is not.",
            ("moot verify", "moot verify 1", "moot verify --all --json", "moot verify --upgrade --all --dry-run"),
        ),
        "backup": Command(
            "moot.cli.backing:backup",
            "Writes the whole home into one file, also while it is in use, and reads it again.",
            ("moot backup", "moot backup /mnt/disk/moot.backup", "moot backup --check /mnt/disk/moot.backup"),
        ),
        "restore": Command(
            "moot.cli.backing:restore",
            "Makes a home of a backup: all of it, or nothing.",
            ("moot restore moot.backup", "moot restore moot.backup --into ~/another", "moot restore moot.backup --replace"),
        ),
        "purge": Command(
            "moot.cli.forgetting:purge",
            "Takes conversations away for good, and says what went where.",
            ("moot purge 0193a4", "moot purge --deleted --dry-run", "moot purge --before 2025-01-31 --yes", "moot purge --expired"),
        ),
        "redact": Command(
            "moot.cli.forgetting:redact",
            "Takes strings out of everything that is stored.",
            ("moot redact", "moot redact --from secrets.txt --yes", "moot redact -c 1 --regex 'sk-[A-Za-z0-9]{20,64}' --dry-run"),
        ),
        "import": Command(
            "moot.cli.importing:import_",
            "Brings conversations in: all that the agents on this machine keep, or files and folders of other programs.",
            (
                "moot import --all",
                "moot import --all --watch",
                "moot import ~/backup/claude export.zip",
                "moot import ~/.tailored-ai --configuration found.yaml",
                "moot import capture.jsonl -f recording --agent-type codex",
            ),
        ),
        "replay": Command(
            "moot.cli.replaying:replay",
            "Shows a conversation again as it came, with its own timing.",
            ("moot replay 1", "moot replay 1 --speed 4", "moot replay 1 --rerun", "moot replay 1 --rerun --model small@ollama"),
        ),
        "share": Command(
            "moot.cli.sharing:share",
            "Shows a conversation to whoever has a link: a page of your own server, until it expires.",
            ("moot share 1", "moot share 1 --expires 12h --preview page.html", "moot share --list", "moot share --revoke 019a"),
        ),
        "export": Command(
            "moot.cli.exporting:export",
            "Writes conversations as files of a format: to read, to print, to take elsewhere.",
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
        "serve": Command(
            "moot.cli.serving:serve",
            "Serves the page and the HTTP operations until it is stopped.",
            ("moot serve", "moot serve --port 4748", "moot serve --host 0.0.0.0 --allow-remote"),
        ),
        "web": Command("moot.cli.serving:web", "Opens the page in your browser.", ("moot web", "moot web --no-open")),
        "tokens": TOKENS,
        "store": STORE,
        "config": CONFIG,
        "logs": Command(
            "moot.cli.log_showing:logs", "What moot's processes noticed.", ("moot logs -n 20", "moot logs --follow"), bare=True
        ),
        "completion": COMPLETION,
        "doctor": Command(
            "moot.cli.doctor:doctor", "Is everything in order? Exit code 1 when something is broken.", ("moot doctor", "moot doctor --json")
        ),
        "version": Command("moot.cli.version:version", "moot's version.", ("moot version", "moot version --json"), bare=True),
    },
    ("moot", "moot --yes", 'moot run "what does README.md say?"', "moot chat continue 1"),
    alone="Without a command it is a conversation in this terminal; --yes (-y) then takes the first model that is found, and asks nothing.",
)
