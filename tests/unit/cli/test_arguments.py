"""Command lines and the calls they result in."""

from __future__ import annotations

import inspect
import shlex
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moot.cli.arguments.completion import FILE, build_table, leaves
from moot.cli.arguments.help import lines_of
from moot.cli.arguments.parser import command_at, parse, wants_json
from moot.cli.arguments.signatures import Call, arguments_of
from moot.cli.tree import TREE
from moot.cli.tree.nodes import Command, Group
from moot.errors import UsageError
from moot.plugins.registry import attribute
from moot.types.canonical import loads_object

COMMAND_LINES = [
    ("", "start"),
    ("-y", "start yes=True"),
    ("'fix the tests'", "start prompt=['fix the tests']"),
    ("fix the tests", "start prompt=['fix', 'the', 'tests']"),
    ("fix the tests -m demo", "start prompt=['fix', 'the', 'tests'] model='demo'"),
    ("-m demo hello", "start prompt=['hello'] model='demo'"),
    ("-c", "start continue_='@latest'"),
    ("-c and now the tests", "start prompt=['and', 'now', 'the', 'tests'] continue_='@latest'"),
    ("-r", "start resume='@choose'"),
    ("--resume 3 hello", "start prompt=['hello'] resume='3'"),
    ("-p reviewer --mode plan hello", "start prompt=['hello'] agent='reviewer' mode='plan'"),
    ("--print hello", "start prompt=['hello'] print_=True"),
    ("-- run", "start prompt=['run']"),
    ("hello", "error: Unknown command 'hello'."),
    ("stat", "error: Unknown command 'stat'. Did you mean 'stats'?"),
    ("stat --json", "error: Unknown command 'stat'. Did you mean 'stats'?"),
    ("serch word", "error: Unknown command 'serch'. Did you mean 'search'?"),
    ("-m demo --help", "help"),
    ("-r -h", "help"),
    ("'fix the tests' --help", "help"),
    ("help me understand main.py", "start prompt=['help', 'me', 'understand', 'main.py']"),
    ("help write tests", "start prompt=['help', 'write', 'tests']"),
    ("help task add", "error: Unknown command 'task'. Did you mean 'tasks'?"),
    ("help serch x", "error: Unknown command 'serch'. Did you mean 'search'?"),
    ("help chta list", "error: Unknown command 'chta'. Did you mean 'chat'?"),
    ("chta list", "error: Unknown command 'chta'. Did you mean 'chat'?"),
    ("chta list --help", "error: Unknown command 'chta'. Did you mean 'chat'?"),
    ("serch word --help", "error: Unknown command 'serch'. Did you mean 'search'?"),
    ("help tasks add", "help"),
    ("--modle demo hello", "error: Unknown option '--modle'. Did you mean '--mode'?"),
    ("run hello", "run prompt=['hello']"),
    ("run", "run"),
    ("run a b", "run prompt=['a', 'b']"),
    ("run -m demo hello", "run prompt=['hello'] model='demo'"),
    ("run hello -m demo", "run prompt=['hello'] model='demo'"),
    ("run -mdemo hello", "run prompt=['hello'] model='demo'"),
    ("run --model demo hello", "run prompt=['hello'] model='demo'"),
    ("run --model=demo hello", "run prompt=['hello'] model='demo'"),
    ("run --model demo@x --effort high hello", "run prompt=['hello'] model='demo@x' effort='high'"),
    (
        "run --effort hgih hello",
        "error: Invalid value 'hgih' for '--effort': expected one of none, low, medium, high, max. Did you mean 'high'?",
    ),
    ("run --mod demo hello", "error: Unknown option '--mod'. Did you mean '--mode'?"),
    ("run --modell demo hello", "error: Unknown option '--modell'. Did you mean '--model'?"),
    ("run --model", "error: Option '--model' requires a value."),
    ("run hello --model", "error: Option '--model' requires a value."),
    ("run hello --model --json", "error: Option '--model' requires a value."),
    ("run hello --model=", "run prompt=['hello'] model=''"),
    ("run --nope hello", "error: Unknown option '--nope'."),
    ("run -z hello", "error: Unknown option '-z'."),
    ("run -c", "run continue_='@latest'"),
    ("run -c 3 hello", "run prompt=['hello'] continue_='3'"),
    ("run -c hello", "run prompt=['hello'] continue_='@latest'"),
    ("run -c 0193a4b2 hello", "run prompt=['hello'] continue_='0193a4b2'"),
    ("run -c --json", "run continue_='@latest' json=True"),
    ("run --continue=Title hello", "run prompt=['hello'] continue_='Title'"),
    ("run --continue 7", "run continue_='7'"),
    ("run -c=7 hello", "run prompt=['hello'] continue_='7'"),
    ("run --reply -c hello", "run prompt=['hello'] continue_='@latest' reply=True"),
    ("run -- -c 3", "run prompt=['-c', '3']"),
    ("run -- --json", "run prompt=['--json']"),
    ("run -- a --json -c", "run prompt=['a', '--json', '-c']"),
    ("run hello -- --world", "run prompt=['hello', '--world']"),
    ("run hello -- world", "run prompt=['hello', 'world']"),
    ('run "-x is what?"', "error: Unknown option '-x is what?'."),
    ("run -", "error: Unknown option '-'."),
    ("run -1", "run prompt=['-1']"),
    ("run -- -1", "run prompt=['-1']"),
    ('run ""', "run prompt=['']"),
    ("run --tools x", "run prompt=['x'] tools='@all'"),
    ("run --tools", "run tools='@all'"),
    ("run --tools shell hello", "run prompt=['hello'] tools='shell'"),
    ("run --tools shell,read_file hello", "run prompt=['hello'] tools='shell,read_file'"),
    ("run --tools=shell hello", "run prompt=['hello'] tools='shell'"),
    ("run --tools= hello", "run prompt=['hello'] tools=''"),
    ("run --tools raed_file hello", "run prompt=['hello'] tools='raed_file'"),
    ("run --no-tools hello", "run prompt=['hello'] no_tools=True"),
    ("run --json hello", "run prompt=['hello'] json=True"),
    ("run --json --json hello", "error: Option '--json' was given more than once."),
    ("run --json=true hello", "run prompt=['hello'] json=True"),
    ("run --json=false hello", "run prompt=['hello']"),
    ("run --no-json hello", "error: Unknown option '--no-json'. Did you mean '--json'?"),
    ("run --max-steps 3 hello", "run prompt=['hello'] max_steps=3"),
    ("run --max-steps 0 hello", "error: Invalid value 0 for '--max-steps': the minimum is 1."),
    ("run --max-steps -3 hello", "error: Invalid value -3 for '--max-steps': the minimum is 1."),
    ("run --max-steps x hello", "error: Invalid value 'x' for '--max-steps': expected an integer."),
    ("run --max-steps 1.5 hello", "error: Invalid value '1.5' for '--max-steps': expected an integer."),
    ("run --max-steps=3 hello", "run prompt=['hello'] max_steps=3"),
    ("run --max-steps 3 --max-steps 4 hello", "error: Option '--max-steps' was given more than once."),
    ("run --max-cost 0.5 hello", "run prompt=['hello'] max_cost=0.5"),
    ("run --max-cost .5 hello", "run prompt=['hello'] max_cost=0.5"),
    ("run --max-cost 0 hello", "error: Invalid value 0.0 for '--max-cost': it must be greater than 0."),
    ("run --max-cost -1 hello", "error: Invalid value -1.0 for '--max-cost': it must be greater than 0."),
    ("run --max-cost 1e-2 hello", "run prompt=['hello'] max_cost=0.01"),
    ("run -f a.txt -f b.txt hello", "run prompt=['hello'] file=['a.txt', 'b.txt']"),
    ("run -fa.txt hello", "run prompt=['hello'] file=['a.txt']"),
    ("run --file a.txt --file=b.txt", "run file=['a.txt', 'b.txt']"),
    ("run -m a -m b hello", "error: Option '-m' was given more than once."),
    ("run -y hello", "run prompt=['hello'] yes=True"),
    ("run -a x -y -m d hello", "run prompt=['hello'] model='d' agent='x' yes=True"),
    ("run -p reviewer hello", "run prompt=['hello'] agent='reviewer'"),
    ("run --profile reviewer hello", "run prompt=['hello'] agent='reviewer'"),
    ("run --on-busy queue hello", "run prompt=['hello'] on_busy='queue'"),
    ("run --on-busy nope hello", "error: Invalid value 'nope' for '--on-busy': expected one of reject, queue, steer, interrupt."),
    ("run --schema s.json hello", "run prompt=['hello'] schema='s.json'"),
    ("run none", "run prompt=['none']"),
    ("run -m none hello", "run prompt=['hello'] model='none'"),
    ("run --timeout 5m hello", "run prompt=['hello'] timeout='5m'"),
    ("chat new let us plan", "new prompt=['let', 'us', 'plan']"),
    ("chat new let us -m demo plan", "new prompt=['let', 'us', 'plan'] model='demo'"),
    ("chat new -- --json -m x", "new prompt=['--json', '-m', 'x']"),
    ("chat new plan -- --json", "new prompt=['plan', '--json']"),
    ("chat new", "new"),
    ("chat new --tools read_file,nope x", "new prompt=['x'] tools='read_file,nope'"),
    ("chat new -c 3", "error: Unknown option '-c'."),
    ("chat continue 3 and now the tests", "continue_ conversation='3' prompt=['and', 'now', 'the', 'tests']"),
    ("chat continue 3 --again", "continue_ conversation='3' again=True"),
    ("chat continue", "error: Missing argument CONVERSATION."),
    ("chat continue 3 and --json now", "continue_ conversation='3' prompt=['and', 'now'] json=True"),
    ("chat continue -3", "continue_ conversation='-3'"),
    ("chat list", "list_"),
    ("chat list release --here", "list_ words=['release'] here_only=True"),
    ("chat list --limit 10", "list_ limit=10"),
    ("chat list --limit 900", "error: Invalid value 900 for '--limit': the maximum is 200."),
    ("chat list --limit 0", "error: Invalid value 0 for '--limit': the minimum is 1."),
    ("chat list --limit -1", "error: Invalid value -1 for '--limit': the minimum is 1."),
    ("chat list --limti 3", "error: Unknown option '--limti'. Did you mean '--limit'?"),
    ("chat list --limit=5 --json", "list_ limit=5 json=True"),
    ("chat lits", "error: Unknown command 'lits'. Did you mean 'list'?"),
    ("chat", "help"),
    ("chat --help", "help"),
    ("chat list --help", "help"),
    ("chat list -h", "help"),
    ("chat help", "error: Unknown command 'help'."),
    ("help", "help"),
    ("help chat list", "help"),
    ("help rnu", "error: Unknown command 'rnu'. Did you mean 'run'?"),
    ("help chat lits", "error: Unknown command 'lits'. Did you mean 'list'?"),
    ("--help", "help"),
    ("-h", "help"),
    ("--version", "error: Unknown option '--version'."),
    ("run --help", "help"),
    ("run hello --help", "help"),
    ("run --help hello", "help"),
    ("run --model --help", "help"),
    ("run -- --help", "run prompt=['--help']"),
    ("rnu", "error: Unknown command 'rnu'. Did you mean 'run'?"),
    ("nope nothing", "start prompt=['nope', 'nothing']"),
    ("version", "version"),
    ("version x", "error: Unexpected argument 'x'. Put quotes around words that belong together."),
    ("version --json", "version json=True"),
    ("search exit code", "search query=['exit', 'code']"),
    ("search -c 3 word", "search query=['word'] conversation='3'"),
    ("search '\"exit code\" role:user' --best", "search query=['\"exit code\" role:user'] best=True"),
    ("search --wait 2.5 --meaning x", "search query=['x'] meaning=True wait=2.5"),
    ("search -draft", "error: Unknown option '-draft'."),
    ("search -- -draft", "search query=['-draft']"),
    ("import --all", "import_ all=True"),
    ("import a b --dry-run", "import_ source=['a', 'b'] dry_run=True"),
    ("import -f", "error: Option '-f' requires a value."),
    ("export 1 -f md", "export conversation='1' format='md'"),
    ("export --all -f md -o backup", "export all_=True format='md' to='backup'"),
    ("export 1 --branch shown", "export conversation='1' branch='shown'"),
    ("export 1 --branch other", "error: Invalid value 'other' for '--branch': expected one of all, shown."),
    ("models pull --from w.gguf --yes-download", "pull_model from_='w.gguf' yes_download=True"),
    ("models list ollama --json", "list_models provider='ollama' json=True"),
    ("config set limits.steps 20", "set_ key='limits.steps' value='20'"),
    ("config set limits.steps -1", "set_ key='limits.steps' value='-1'"),
    ("config set a", "error: Missing argument VALUE."),
    ("config set a b c", "error: Unexpected argument 'c'. Put quotes around words that belong together."),
    ('permissions test shell "git push; ls"', "test_rule tool='shell' subject='git push; ls'"),
    ("agents add mine -- my-agent --acp", "add_agent name='mine' command=['my-agent', '--acp']"),
    ("agents add mine my-agent", "add_agent name='mine' command=['my-agent']"),
    ("serve --port 4748", "serve port=4748"),
    ("serve --port 70000", "error: Invalid value 70000 for '--port': the maximum is 65535."),
    ("serve --port x", "error: Invalid value 'x' for '--port': expected an integer."),
    ("completion show bash", "show shell='bash'"),
    ("completion show tcsh", "error: Invalid value 'tcsh' for SHELL: expected one of bash, zsh, fish."),
    ('completion words bash "moot chat "', "words shell='bash' line='moot chat '"),
    ("logs -n 20", "logs number=20"),
    ("logs -n20", "logs number=20"),
    ("logs --follow", "logs follow=True"),
    ('projects edit shop --rules ""', "edit project='shop' rules=''"),
    ("chat rename 1 release plans", "rename conversation='1' title=['release', 'plans']"),
    ("chat delete 1 --message 3 --message 4", "delete conversation='1' message=['3', '4']"),
    ("chat tree 1 --all", "tree conversation='1' all_=True"),
    ("tokens create ci --scopes read --user mara", "create_token name='ci' scopes='read' user='mara'"),
    ("store", "help"),
    ("store compact --dry-run", "compact dry_run=True"),
    ("--json", "start json=True"),
    ("--nope", "error: Unknown option '--nope'."),
    ('""', "error: Unknown command ''."),
]


def shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return repr([str(item) for item in value])
    return repr(str(value) if isinstance(value, Path) else value)


def described(call: Call) -> str:
    """Return the command's function and the arguments that differ from their defaults."""
    if call.command.__name__ == "show_help":
        return "help"
    signature = inspect.signature(call.command)
    extra = {"output": None} if "output" in signature.parameters else {}
    found = [call.command.__name__]
    for name, value in signature.bind(*call.args, **call.keywords, **extra).arguments.items():
        if is_dataclass(value):
            options = ((field.name, getattr(value, field.name), field.default) for field in fields(value))
            found += [f"{name}={shown(value)}" for name, value, default in options if value != default]
        elif name != "output" and value not in (signature.parameters[name].default, ()):
            found.append(f"{name}={shown(value)}")
    return " ".join(found)


@pytest.mark.parametrize(("line", "expected"), COMMAND_LINES)
def test_a_command_line_has_this_result(line: str, expected: str) -> None:
    try:
        result = described(parse(shlex.split(line)))
    except UsageError as error:
        assert error.exit_code == 2
        assert "--help" in error.fix
        result = f"error: {error.message}"
    assert result == expected


COMMANDS = list(leaves(TREE))
NAMES = [" ".join(path) for path, _ in COMMANDS]


@given(st.sampled_from(COMMANDS), st.data())
@settings(max_examples=100, deadline=None)
def test_abbreviated_options_are_rejected(leaf: tuple[tuple[str, ...], Command], data: st.DataObject) -> None:
    path, command = leaf
    flags = {flag for argument in arguments_of(attribute(command.path)) for flag in argument.flags if flag.startswith("--")}
    flag = data.draw(st.sampled_from(sorted(flags | {"--help"})))
    short = flag[: data.draw(st.integers(3, len(flag)))]
    if short not in flags | {"--help"}:
        with pytest.raises(UsageError, match="Unknown option"):
            parse([*path, short])


@given(st.lists(st.text(max_size=8)))
def test_every_word_after_two_dashes_is_part_of_the_prompt(words: list[str]) -> None:
    assert parse(["chat", "new", "--", *words]).args == tuple(words)
    assert parse(["chat", "new", "-m", "demo", "first", "--", *words, "-c"]).args == ("first", *words, "-c")


def test_a_prompt_of_several_words_is_not_a_list_of_tools() -> None:
    call = parse(["run", "--tools", "shell, please"])
    assert (call.args, call.keywords["flags"].tools) == (("shell, please",), "@all")


def test_errors_are_json_only_if_the_option_comes_before_two_dashes() -> None:
    assert wants_json(["run", "--json"])
    assert not wants_json(["run", "--", "--json"])


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=NAMES)
def test_each_example_parses(path: tuple[str, ...], command: Command) -> None:
    assert command.examples
    for example in command.examples:
        words = shlex.split(example.rpartition("| ")[2])
        assert tuple(words[: len(path) + 1]) == ("moot", *path), example
        assert parse(words[1:]).command is attribute(command.path)


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=NAMES)
def test_every_argument_has_help(path: tuple[str, ...], command: Command) -> None:
    arguments = arguments_of(attribute(command.path))
    assert [argument.name for argument in arguments if not argument.parameter.help.endswith((".", ")", "?"))] == []
    assert len({argument.name for argument in arguments}) == len(arguments)


def groups(group: Group = TREE, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Group]]:
    below = [groups(item, (*path, name)) for name, item in group.commands.items() if isinstance(item, Group)]
    return [(path, group), *(found for each in below for found in each)]


PAGES = [path for path, _ in [*groups(), *COMMANDS]]


def test_an_option_has_one_name_for_its_value_in_all_commands() -> None:
    found: dict[str, set[str]] = {}
    for _, command in COMMANDS:
        for argument in arguments_of(attribute(command.path)):
            for flag in argument.flags:
                if flag.startswith("--") and flag not in ("--from", "--at", "--host", "--context") and argument.type is not bool:
                    found.setdefault(flag, set()).add(argument.metavar)
    assert {flag: names for flag, names in found.items() if len(names) > 1} == {}
    assert (found["--since"], found["--before"], found["--expires"], found["--timeout"]) == ({"TIME"}, {"TIME"}, {"DURATION"}, {"DURATION"})


@pytest.mark.parametrize("path", PAGES, ids=" ".join)
def test_help_pages_are_wrapped_at_word_borders(path: tuple[str, ...]) -> None:
    item = command_at(path)[0]
    words = [word for line in lines_of(path, item, 200) for word in line.replace(" \\", "").split()]
    for width in (40, 60, 80, 100, 200):
        page = list(lines_of(path, item, width))
        assert [word for line in page for word in line.replace(" \\", "").split()] == words
        assert [line for line in page if len(line) > width] == []


@pytest.mark.parametrize("path", PAGES, ids=" ".join)
def test_help_pages_have_a_summary_and_examples_and_no_empty_defaults(path: tuple[str, ...]) -> None:
    page = "\n".join(lines_of(path, command_at(path)[0], 100))
    assert page.partition("\n")[0].endswith(".")
    assert "\n\nExamples:\n  moot" in page or "\n\nExamples:\n  git" in page
    assert not any(empty in page for empty in ("None", "default: ]", 'default: ""', "default: False"))


def test_every_command_is_in_one_section_of_the_help() -> None:
    listed = [name for names in TREE.sections.values() for name in names]
    assert sorted(listed) == sorted(TREE.commands)


def test_help_is_a_command_too(moot: Any) -> None:
    assert moot("help").out == moot("--help").out != ""
    assert moot("help", "run").out == moot("run", "--help").out != ""
    assert moot("help", "chat").out == moot("chat", "--help").out != ""


def test_help_is_plain_in_a_pipe(moot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    ended = moot("run", "--help")
    assert (ended.code, ended.err, "\x1b" in ended.out) == (0, "", False)
    assert max(map(len, ended.out.splitlines())) <= 60


def test_the_completion_table_matches_the_commands() -> None:
    assert loads_object(FILE.read_bytes()) == build_table(), "run python docs/generate.py"
