from __future__ import annotations

import re
from pathlib import Path

import pytest

from moot.config.loader import FILE, Loaded, Loader, load
from moot.config.trust import revoke_trust, trust_file
from moot.errors import ConfigError
from moot.types.canonical import Json


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def loaded(home: Path, text: str = "", environ: dict[str, str] | None = None, flags: dict[str, Json] | None = None) -> Loaded:
    if text:
        (home / FILE).write_text(text)
    return load(home=home, environ=environ or {}, flags=flags, directory=home.parent)


def refused(home: Path, text: str, environ: dict[str, str] | None = None) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        loaded(home, text, environ)
    return caught.value


def port_of(found: Loaded) -> Json:
    server = found.configuration["server"]
    assert isinstance(server, dict)
    return server["port"]


def test_an_empty_home_gives_the_defaults_and_creates_no_file(home: Path) -> None:
    settings = loaded(home).settings
    assert (settings.models.main, settings.permissions.mode, settings.limits.steps, settings.storage.durability) == (
        "",
        "ask",
        50,
        "normal",
    )
    assert not settings.agents
    assert not settings.providers
    assert list(home.iterdir()) == []


def test_the_example_of_the_design_loads(home: Path) -> None:
    text = """
models: {main: claude-sonnet-4-5@anthropic, small: s, fallback: [a@b, c]}
providers:
  anthropic: {api_key: "${ANTHROPIC_API_KEY}"}
  ollama: {base_url: "http://127.0.0.1:11434"}
  mine: {dialect: openai-chat, base_url: "http://127.0.0.1:9000/v1", api_key: "${MINE_KEY:-none}", models: {big: {context: 100000}}}
agents:
  reviewer: {description: d, model: main, instructions: i, tools: [read_file], skills: [s], rules: r, role: read, temperature: 0.3,
             max_steps: 20, reasoning: {effort: low, show: true}, history: {max_tokens: 8000, compact_at: 0.8, keep: 6},
             allowed_uris: [~/work], hooks: {before_run: [], after_run: []}}
mcp: {files: {command: npx, args: [x], env: {}}, docs: {url: "https://example.org", protocol: http, headers: {}}}
permissions: {mode: ask, rules: [{tool: shell, match: "git status*", action: allow}], timeout: 5m, unattended: deny}
hooks: {}
server: {host: 127.0.0.1, port: 4747}
storage: {url: sqlite, durability: normal}
limits: {}
ui: {}
"""
    settings = loaded(home, text, {"ANTHROPIC_API_KEY": "sk-ant-1"}).settings
    assert settings.models.fallback == ("a@b", "c")
    assert settings.providers["anthropic"].api_key == "sk-ant-1"
    assert settings.providers["mine"].api_key == "none"
    assert settings.providers["mine"].models == {"big": {"context": 100000}}
    reviewer = settings.agents["reviewer"]
    assert (reviewer.effort, reviewer.tools, reviewer.allowed_uris) == ("low", ("read_file",), (str(Path.home() / "work"),))
    assert reviewer.history.max_tokens == 8000
    assert settings.permissions.timeout == 300
    assert settings.permissions.rules[0].match == "git status*"


def test_later_layers_win_and_are_recorded(home: Path) -> None:
    text = "models:\n  main: file@x\n  small: file@x\n  image: file@x\n"
    found = loaded(home, text, {"MOOT_MODELS__SMALL": "env@x", "MOOT_MODELS__IMAGE": "env@x"}, {"models.image": "flag@x"})
    models = found.settings.models
    assert (models.main, models.small, models.image) == ("file@x", "env@x", "flag@x")
    assert found.origin["models.main"] == f"user {home / FILE}:2:9"
    assert found.origin["models.small"] == "environment MOOT_MODELS__SMALL"
    assert found.origin["models.image"] == "flags models.image"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("MOOT_SERVER__PORT", "4748", "4748"),
        ("MOOT_LIMITS__COST", "0.5", "500000000"),
        ("MOOT_PERMISSIONS__MODE", "plan", "plan"),
        ("MOOT_PERMISSIONS__TIMEOUT", "2m", "120.0"),
        ("MOOT_PROVIDERS__LM_STUDIO__API_KEY", "0042", "0042"),
        ("MOOT_PROVIDERS__LM_STUDIO__ENABLED", "false", "False"),
    ],
)
def test_a_variable_is_a_yaml_scalar_at_its_level(home: Path, name: str, value: str, expected: str) -> None:
    found = loaded(home, environ={name: value})
    settings = found.settings
    got = {
        "MOOT_SERVER__PORT": port_of(found),
        "MOOT_LIMITS__COST": settings.limits.cost,
        "MOOT_PERMISSIONS__MODE": settings.permissions.mode,
        "MOOT_PERMISSIONS__TIMEOUT": settings.permissions.timeout,
        "MOOT_PROVIDERS__LM_STUDIO__API_KEY": settings.providers["lm-studio"].api_key if settings.providers else "",
        "MOOT_PROVIDERS__LM_STUDIO__ENABLED": settings.providers["lm-studio"].enabled if settings.providers else "",
    }
    assert str(got[name]) == expected


def test_moots_own_variables_and_env_files_are_not_settings(home: Path) -> None:
    (home / ".env").write_text("MOOT_MODELS__MAIN=sneaky@x\n")
    (home.parent / ".env").write_text("MOOT_MODELS__MAIN=sneaky@x\n")
    own = {"MOOT_HOME": str(home), "MOOT_TOKEN": "t", "MOOT_CRASH_AT": "x", "MOOT_TESTING": "1", "MOOT_DEBUG": "1"}
    found = loaded(home, environ=own)
    assert found.settings.models.main == ""
    assert (found.notes, dict(found.origin)) == ((), {})


def test_an_untrusted_project_is_ignored_with_a_note(home: Path) -> None:
    project = home.parent / ".moot"
    project.mkdir()
    (project / FILE).write_text("models: {main: evil@x}\npermissions: {mode: auto}\n")
    found = loaded(home)
    assert (found.settings.models.main, found.settings.permissions.mode) == ("", "ask")
    assert any(str(project / FILE) in note for note in found.notes)


CASES = [
    ("ui: {notifyy: bell}", ":1:6:", "Did you mean 'notify'?"),
    ("ui: {notify: bel}", ":1:14:", "ui.notify: Expected `bell`, `osc`, `off`, `true`, or a list"),
    ("ui: {theme: drak}", ":1:13:", "Did you mean 'dark'?"),
    ("mdels: {}", ":1:1:", "Did you mean 'models'?"),
    ("models:\n  mian: x", ":2:3:", "Did you mean 'main'?"),
    ("agents:\n  r:\n    temprature: 1", ":3:5:", "Did you mean 'temperature'?"),
    ("permissions:\n  rules:\n    - {tool: shell, acton: allow}", ":3:21:", "Did you mean 'action'?"),
    ("providers: {openai: {api_ky: x}}", ":1:22:", "Did you mean 'api_key'?"),
    ("tools:\n  shel: {environment: [A]}", ":2:3:", "tools: Tool 'shel' not found. Did you mean 'shell'?"),
    ("agents: {r: {tools: [shell, raed_file]}}", ":1:29:", "agents.r.tools[1]: Tool 'raed_file' not found. Did you mean 'read_file'?"),
    ("providers: {antropic: {api_key: x}}", ":1:13:", "Did you mean 'anthropic'?"),
    ("providers: {mine: {base_url: 'http://x', dialect: openai-chet}}", ":1:", "Did you mean 'openai-chat'?"),
    ("providers: {mine: {base_url: 'ftp://x'}}", ":1:30:", "http://"),
    ("permissions: {mode: edit}", ":1:21:", "Did you mean 'edits'?"),
    ("permissions: {timeout: soon}", ":1:24:", "90s"),
    ("server: {port: 70000}", ":1:16:", "70000"),
    ("server: {port: x}", ":1:16:", "Expected a whole number"),
    ("limits: {steps: -1}", ":1:17:", "greater than or equal to 0"),
    ("models: [a]", ":1:1:", "Expected a mapping"),
    ("agents: {r: {allowed_uris: [work]}}", ":1:29:", "agents.r.allowed_uris[0]: Expected an absolute path"),
    ("agents: {r: {tools: read_file}}", ":1:21:", "Expected a list"),
    ("permissions: {rules: [{tool: shell}]}", ":1:23:", "'action' is missing"),
    ("providers: {openai: {api_key: 12345678}}", ":1:31:", "Expected text"),
    ("- a", ":1:1:", "Expected a mapping"),
    ("a: [1, 2", ":1:", "Expected ',' or ']'"),
    ("a: b: c", ":1:5:", "Mapping values are not allowed here."),
    ("a:\n\tb: 1", ":2:1:", "\\t"),
    ("a: 'x", ":1:", "end of stream"),
    ("x: \x07", ":1:4:", "not allowed"),
    ("a: 1\nb: 2\na: 3", ":3:1:", "The key 'a' occurs twice."),
    ("x: !!python/object/apply:os.system [id]", ":1:4:", "Tags such as"),
    ("!!map {}", ":1:1:", "Tags such as"),
    ("? !!str a\n: 1", ":1:3:", "Tags such as"),
    ("a: *nowhere", ":1:4:", "is not defined"),
    ("a: &a [*a]", ":1:", "is not defined"),
    ("a: 1\n---\nb: 2", ":2:1:", "one document"),
    ("[a]: 1", ":1:1:", "A key must be a scalar."),
    ("providers: {openai: {api_key: ${KEY}}}", ":1:32:", "Expected"),
    ("models: {main: '${'}", ":1:16:", "${NAME}"),
    ("models: {main: '${A:-${B}}'}", ":1:16:", "${NAME}"),
]


@pytest.mark.parametrize(("text", "where", "words"), CASES, ids=[text for text, _, _ in CASES])
def test_every_error_names_file_line_column_and_expectation(home: Path, text: str, where: str, words: str) -> None:
    error = refused(home, text)
    assert f"{home / FILE}{where}" in error.message
    assert words in error.message
    assert error.exit_code == 2


def test_all_errors_are_reported_at_once_in_order(home: Path) -> None:
    lines = refused(home, "limits: {steps: x, depth: y}\nmodels: {mian: z}").message.splitlines()
    assert [re.sub(r"^.*?config.yaml:", "", line).split(":")[0] for line in lines] == ["1", "1", "2"]


def test_an_unknown_variable_is_reported_by_name(home: Path) -> None:
    error = refused(home, "", {"MOOT_SERVER__PROT": "1"})
    assert "MOOT_SERVER__PROT" in error.message
    assert "Did you mean 'port'?" in error.message
    assert any("MOOT_PORT" in note for note in loaded(home, environ={"MOOT_PORT": "1"}).notes)


def test_conflicting_variables_are_rejected(home: Path) -> None:
    assert "MOOT_MODELS__MAIN" in refused(home, "", {"MOOT_MODELS": "x", "MOOT_MODELS__MAIN": "y"}).message
    assert "MOOT_models__main" in refused(home, "", {"MOOT_models__main": "x", "MOOT_MODELS__MAIN": "y"}).message


def test_a_missing_variable_names_file_line_column_key_and_variable(home: Path) -> None:
    error = refused(home, "providers:\n  openai:\n    api_key: ${NOT_SET}\n")
    assert error.message == f"{home / FILE}:3:14: providers.openai.api_key: The environment variable 'NOT_SET' is not set."
    assert "${NOT_SET:-default}" in error.fix


@pytest.mark.parametrize("environ", [{}, {"MOOT_PROVIDERS__OPENAI__ENABLED": "false"}])
def test_a_disabled_part_needs_no_variables(home: Path, environ: dict[str, str]) -> None:
    switch = "" if environ else "    enabled: false\n"
    text = f"providers:\n  openai:\n    headers: {{x: '${{NOT_SET}}'}}\n    api_key: ${{NOT_SET}}\n{switch}"
    assert loaded(home, text, environ).settings.providers["openai"].enabled is False


def test_a_key_made_of_digits_stays_text_when_a_variable_brings_it(home: Path) -> None:
    text = "providers: {openai: {api_key: '${KEY}', priority: 3}}\nserver:\n  port: ${PORT}\nstorage:\n  url: ${KEY}\n"
    found = loaded(home, text, {"KEY": "00123456", "PORT": "99"})
    assert (found.settings.providers["openai"].api_key, found.settings.storage.url) == ("00123456", "00123456")
    assert port_of(found) == 99


def test_a_variable_can_never_become_structure(home: Path) -> None:
    hostile = "x, base_url: 'http://evil'}\nmodels: {main: evil@x"
    found = loaded(home, "providers:\n  openai:\n    api_key: ${KEY}\n", {"KEY": hostile})
    assert found.settings.providers["openai"].api_key == hostile
    assert found.settings.models.main == ""


def test_alias_bombs_are_rejected_before_they_expand(home: Path) -> None:
    laughs = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10))
    assert "more than 50000 values" in refused(home, laughs).message
    assert "nested deeper" in refused(home, "a: " + "[" * 200).message
    assert "nested deeper" in refused(home, "".join(f"{' ' * n}a:\n" for n in range(60))).message


def test_a_file_of_100_megabytes_is_rejected_without_reading_it(home: Path) -> None:
    with (home / FILE).open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(ConfigError, match="larger than 1024 KiB"):
        loaded(home)


def test_other_encodings_and_folders_are_rejected_with_a_reason(home: Path) -> None:
    (home / FILE).write_bytes("models: {}\nui: {x: é}\n".encode("latin-1"))
    with pytest.raises(ConfigError, match=r":2:9: The file is not valid UTF-8"):
        loaded(home)
    (home / FILE).unlink()
    (home / FILE).mkdir()
    with pytest.raises(ConfigError, match="Cannot read the file"):
        loaded(home)


def test_a_byte_order_mark_and_an_empty_file_are_fine(home: Path) -> None:
    (home / FILE).write_bytes("﻿models: {main: a@b}\n".encode())
    assert loaded(home).settings.models.main == "a@b"
    assert loaded(home, "# nothing\n").settings.models.main == ""
    assert loaded(home, "models:\nlimits: ~\n").settings.limits.steps == 50


def test_a_vendors_key_in_the_environment_adds_its_provider(home: Path) -> None:
    found = loaded(home, "providers: {openai: {api_key: from-file-1}}", {"OPENAI_API_KEY": "from-env-1", "GROQ_API_KEY": "gsk-12345"})
    assert {name: one.api_key for name, one in found.settings.providers.items()} == {"openai": "from-file-1", "groq": "gsk-12345"}
    assert found.origin["providers.groq.api_key"] == "environment GROQ_API_KEY"


def test_a_vendors_key_never_goes_to_another_address(home: Path) -> None:
    found = loaded(home, "providers: {openai: {base_url: 'http://127.0.0.1:9/v1'}}", {"OPENAI_API_KEY": "sk-secret-1"})
    assert found.settings.providers["openai"].api_key == ""


def test_secrets_are_collected_and_never_in_an_error(home: Path) -> None:
    text = """
providers:
  mine: {base_url: 'http://u:pass-canary-1@h/v1', api_key: key-canary-1, headers: {x: header-canary}, token: opt-canary-1}
  other: {base_url: 'http://h', api_key: none}
mcp: {x: {command: y, env: {MY_TOKEN: env-canary-1, HOME: /home/canary-1, LANG: C.UTF-8-canary}}}
"""
    assert set(loaded(home, text).secrets) == {"pass-canary-1", "key-canary-1", "header-canary", "opt-canary-1", "env-canary-1"}
    for fault in (
        "api_key: {a: s3cret-canary}",
        "headers: [s3cret-canary]",
        "headers: {x: 12345678}",
        "models: {a: {api_key: s3cret-canary}, b: 3}",
    ):
        message = refused(home, f"providers: {{openai: {{{fault}}}}}").message
        assert "canary" not in message
        assert "12345678" not in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mcp: {x: {}}", "mcp.x: Expected a command"),
        ("mcp: {x: {command: y, url: 'http://z'}}", "mcp.x: Expected a command"),
        ("mcp: {x: {command: y, headers: {A: b}}}", "mcp.x.headers: This applies only to servers with a url."),
        ("mcp: {x: {url: 'http://z', env: {A: b}}}", "mcp.x.env: This applies only to servers with a command."),
        ("mcp: {x: {url: ftp}}", "mcp.x.url: Expected a URL"),
        ("mcp: {'x y': {command: z}}", "mcp: Invalid server name 'x y'."),
        ("mcp: {files: {command: z}}\nagents: {a: {mcp: [fiels]}}", "agents.a.mcp[0]: MCP server 'fiels' not found. Did you mean 'files'?"),
        ("agents: {a: {mcp: [files]}}", "The section mcp configures no servers."),
    ],
)
def test_invalid_mcp_servers_are_reported(home: Path, text: str, words: str) -> None:
    assert words in refused(home, text).message


def test_a_failed_reload_keeps_the_last_valid_configuration(home: Path) -> None:
    (home / FILE).write_text("models: {main: one@x}")
    loader = Loader(home=home, environ={}, directory=home.parent)
    (home / FILE).write_text("models: {main: two@x")  # half-written
    assert loader.reload() is False
    assert (loader.current.settings.models.main, loader.current.settings.generation) == ("one@x", 1)
    assert loader.error is not None
    assert loader.error.line == 1
    (home / FILE).write_text("models: {main: two@x}")
    assert loader.reload() is True
    assert (loader.current.settings.models.main, loader.current.settings.generation, loader.error) == ("two@x", 2, None)


@pytest.mark.parametrize("content", [None, "", " \n\n"])
def test_a_missing_or_empty_file_does_not_replace_a_valid_one(home: Path, content: str | None) -> None:
    text = "permissions: {rules: [{tool: shell, match: 'rm *', action: deny}]}"
    (home / FILE).write_text(text)
    loader = Loader(home=home, environ={}, directory=home.parent)
    if content is None:
        (home / FILE).unlink()
    else:
        (home / FILE).write_text(content)
    assert loader.stamp() != loader.seen
    assert loader.reload() is False
    assert loader.error is not None and str(home / FILE) in loader.error.message
    assert [rule.action for rule in loader.current.settings.permissions.rules] == ["deny"]
    (home / FILE).write_text(text)
    assert loader.reload() is True
    assert (loader.error, loader.current.settings.generation) == (None, 2)


def test_a_home_without_a_file_can_get_one_and_comments_alone_are_a_valid_file(home: Path) -> None:
    loader = Loader(home=home, environ={}, directory=home.parent)
    assert loader.reload() is True
    (home / FILE).write_text("limits: {steps: 3}")
    assert loader.reload() is True
    assert loader.current.settings.limits.steps == 3
    (home / FILE).write_text("# limits: {steps: 3}")
    assert loader.reload() is True
    assert loader.current.settings.limits.steps == 50


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        ("models: {main: x@nope}", ":1:16", "models.main: Provider 'nope' not found."),
        ("models: {main: x@antropic}", ":1:16", "Did you mean 'anthropic'?"),
        ("agents:\n  a: {model: x@nope}", ":2:14", "agents.a.model: Provider 'nope' not found."),
        (
            "providers: {mine: {base_url: 'http://h/v1', models: {big: {}}}}\nmodels: {main: big@mine, fallback: [bgi@mine]}",
            ":2:37",
            "models.fallback[0]: Model 'bgi' not found in providers.mine.models. Did you mean 'big'?",
        ),
        ("providers: {openai: {colour: red}}", ":1:22", "providers.openai: Unknown key 'colour'."),
        ("providers: {mine: {base_url: 'http://h/v1', path: /x}}", ":1:45", "providers.mine: Unknown key 'path'."),
        ("providers: {openai: {models: {a: {contxt: 5}}}}", ":1:35", "Unknown key 'contxt'. Did you mean 'context'?"),
        ("agents: {a: {tools: [read_file, nothing]}}", ":1:33", "agents.a.tools[1]: Tool 'nothing' not found."),
        ("agents: {a: {agent_type: strange}}", ":1:26", "agents.a.agent_type: Agent type 'strange' not found."),
        ("agents: {a: {fallback: [x@nowhere]}}", ":1:25", "agents.a.fallback[0]: Provider 'nowhere' not found."),
        (
            "tools:\n  web_search: {provider: brave, api_kye: k}",
            ":2:33",
            "tools.web_search: Unknown setting 'api_kye'. Did you mean 'api_key'? Known: api_key, base_url, provider.",
        ),
        ("tools: {shell: {environment: JAVA_HOME}}", ":1:30", "tools.shell.environment: Expected a list, got 'JAVA_HOME'"),
        ("tools: {web_search: {provider: brav}}", ":1:32", "Did you mean 'brave'?"),
        ("tools: {fetch_url: {allow: [10.0.0.0/8, 10.0.0.0/99]}}", ":1:41", "tools.fetch_url.allow[1]: '10.0.0.0/99' does not appear"),
        ("tools: {fetch_url: {ports: [0]}}", ":1:29", "tools.fetch_url.ports[0]"),
        ("tools: {read_file: {lines: 3}}", ":1:21", "tools.read_file: Unknown setting 'lines'. The tool has no settings."),
    ],
)
def test_unknown_names_and_settings_are_reported_with_their_place(home: Path, text: str, where: str, words: str) -> None:
    doubt = loaded(home, text).doubt
    assert doubt is not None and f"{home / FILE}{where}: " in doubt.message and words in doubt.message


def test_the_key_of_a_tool_is_accepted(home: Path) -> None:
    doubt = loaded(home, "tools: {web_search: {api_key: [abcdefgh], provider: brave}}").doubt
    assert doubt is not None and "abcdefgh" not in str(doubt) and "Expected text" in doubt.message


@pytest.mark.parametrize(
    "text",
    [
        "tools: {web_search: {provider: brave, api_key: 1234567890}}",
        "tools: {fetch_url: {allow: [10.0.0.1/8, '::1'], ports: [8080]}, shell: {environment: [JAVA_HOME]}}",
    ],
)
def test_valid_tool_settings_are_accepted(home: Path, text: str) -> None:
    assert loaded(home, text).doubt is None


@pytest.mark.parametrize(
    "text",
    [
        "models: {main: main, small: any-name, fallback: [claude-sonnet-4-5@anthropic]}",
        "providers: {mine: {base_url: 'http://h/v1'}}\nmodels: {main: what@mine}",
        "providers: {openai: {models: {big: {context: 1}}}}\nmodels: {main: other@openai}",
    ],
)
def test_possible_models_are_accepted(home: Path, text: str) -> None:
    assert loaded(home, text).doubt is None


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("hooks: {Stop: []}\ncron: {}\nagents: {a: {options: {command: [x]}}}", ["3:14: agents.a.options"]),
        ("agents:\n  a: {agent_type: acp:mine, model: '', skills: [s], tools: []}", ["2:40: agents.a.skills"]),
        ("agents: {a: {options: {command: [x]}}, b: {mcp: []}}", ["1:14: agents.a.options"]),
        ("agents:\n  a: {agent_type: acp:mine, model: '', temperature: 1, options: {command: [x]}}", ["2:40: agents.a.temperature"]),
        ("agents:\n  a: {agent_type: claude-code, fallback: [default, m@openai]}", ["2:52: agents.a.fallback"]),
        ("channels: {nowhere: {mode: ask}}\ntools: {not_installed: {a: 1}}", ["1:12: channels.nowhere", "2:9: tools.not_installed"]),
    ],
)
def test_keys_without_effect_are_reported_once_and_fail_the_check(home: Path, text: str, keys: list[str]) -> None:
    found = loaded(home, text)
    for key, note in zip(keys, found.notes, strict=True):
        assert note.startswith(f"{home / FILE}:{key}: ")
        assert found.doubt is not None and note in found.doubt.message


def test_options_of_providers_are_accepted(home: Path) -> None:
    text = """providers:
  openai: {proxy: 'http://localhost:1', vendor_tools: [{type: web_search}]}
  mine: {base_url: 'http://h/v1', quirks: {max_tokens: max_completion_tokens}, models: {a: {context: 5, price: {input: 1}}}}
  local: {path: /x/y.gguf}
"""
    assert loaded(home, text).doubt is None


@pytest.mark.parametrize("agent", ["{tools: [nothing]}", "{model: x@nowhere}", "{fallback: [x@nowhere]}", "{agent_type: strange}"])
def test_a_reload_refuses_agents_that_name_what_does_not_exist(home: Path, agent: str) -> None:
    (home / FILE).write_text("agents: {old: {tools: [gone]}}")  # of a package that is not installed now
    loader = Loader(home=home, environ={}, directory=home.parent)
    (home / FILE).write_text("agents: {old: {tools: [gone]}}\nlimits: {steps: 7}")
    assert loader.reload() and loader.current.settings.limits.steps == 7
    (home / FILE).write_text(f"agents:\n  old: {{tools: [gone]}}\n  new: {agent}\nlimits: {{steps: 9}}")
    assert not loader.reload()
    assert loader.error is not None and "agents.new." in loader.error.message and ":3:" in loader.error.message
    assert "agents.old" not in loader.error.message
    assert loader.current.settings.limits.steps == 7


@pytest.mark.parametrize("text", ["permissions:\n", "permissions: {rules: null}\n", "permissions: {mode: edits, rules: []}\n"])
def test_a_trusted_project_can_not_unset_the_rules_of_the_user(home: Path, text: str) -> None:
    (home / FILE).write_text("permissions: {rules: [{tool: shell, match: 'rm *', action: deny}]}\n")
    file = home.parent / ".moot" / FILE
    file.parent.mkdir()
    file.write_text(text)
    trust_file(home, file, text)
    found = loaded(home)
    assert found.project == file
    assert [(rule.match, rule.action) for rule in found.settings.permissions.rules] == [("rm *", "deny")]


def test_a_trusted_project_is_used_until_its_file_changes(home: Path) -> None:
    deny = "permissions: {rules: [{tool: shell, match: 'rm *', action: deny}]}\n"
    (home / FILE).write_text(deny)
    file = home.parent / ".moot" / FILE
    file.parent.mkdir()
    text = "limits: {steps: 7}\npermissions: {rules: [{tool: shell, match: 'make *', action: allow}]}\n"
    file.write_text(text)
    loader = Loader(home=home, environ={}, directory=home.parent)
    assert f"moot trust {home.parent}" in loader.current.notes[0] and loader.current.settings.limits.steps == 50
    trust_file(home, file, text)
    assert loader.stamp() != loader.seen and loader.reload()
    rules = [(rule.match, rule.origin.split()[0]) for rule in loader.current.settings.permissions.rules]
    assert (loader.current.notes, loader.current.settings.limits.steps) == ((), 7)
    assert rules == [("rm *", "user"), ("make *", "project")]
    assert loaded(home, environ={"MOOT_LIMITS__STEPS": "9"}).settings.limits.steps == 9
    file.write_text("limits: {steps: 8}\n")
    assert loader.stamp() != loader.seen and not loader.reload()
    assert loader.error is not None and "changed since it was trusted" in loader.error.message
    assert loader.current.settings.limits.steps == 7
    assert "has changed since it was trusted" in loaded(home).notes[0] and loaded(home).settings.limits.steps == 50
    file.unlink()
    assert not loader.reload() and loader.error is not None and "no longer exists" in loader.error.message
    file.write_text("limits: {steps: 8}\n")
    assert revoke_trust(home, file) and not revoke_trust(home, file)
    assert loader.reload() and loader.current.settings.limits.steps == 50
