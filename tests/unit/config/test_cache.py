from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moot.config.loader import FILE, SECTIONS, Loaded, load
from moot.config.schema import Configuration
from moot.errors import ConfigError

WHOLE = """
# a comment
models: {main: "big@mine", fallback: [a@b, 'it''s@c']}
providers:
  mine:
    base_url: http://127.0.0.1:9/v1
    api_key: "sk-verysecretkey"
    headers: {X-Token: plainly-secret}
    timeout: 5m
    models: {big: {context: 1000, note: "two \\u00e9 words"}}
  other: {base_url: "http://me:hunter2hunter2@127.0.0.1:9/v1", api_key: "${OTHER_KEY}"}
agents:
  reviewer:
    instructions: |
      Many lines,
        kept as they are.
    temperature: 1
    tools: []
permissions: {rules: [{tool: shell, match: "git *", action: allow}]}
limits: {cost: 0.5}
"""
ENVIRON = {"OTHER_KEY": "other-secret-key", "MOOT_LIMITS__STEPS": "7", "ANTHROPIC_API_KEY": "ant-secret-key"}
SECRETS = ("sk-verysecretkey", "plainly-secret", "hunter2hunter2", "other-secret-key", "ant-secret-key")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "state").mkdir(parents=True)
    return tmp_path / "home"


def loaded(home: Path, environ: dict[str, str] = ENVIRON) -> Loaded:
    return load(home=home, environ=environ, directory=home.parent)


def memory(home: Path) -> Path:
    return home / "state" / "config.json"


def test_a_cached_configuration_equals_the_parsed_one(home: Path) -> None:
    (home / FILE).write_text(WHOLE)
    first = loaded(home)
    assert memory(home).stat().st_mode & 0o777 == 0o600
    before = memory(home).read_bytes()
    assert loaded(home) == first
    assert memory(home).read_bytes() == before


def test_the_cache_needs_neither_the_yaml_parser_nor_the_schema(home: Path) -> None:
    (home / FILE).write_text(WHOLE)
    program = (
        "import sys; from pathlib import Path; from moot.config.loader import load; "
        f"load(home=Path({str(home)!r}), environ={ENVIRON!r}, directory=Path('/')); "
        "print(*sorted({name.partition('.')[0] for name in sys.modules} & {'ruamel', 'pydantic'}))"
    )
    said = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() for _ in range(2)]
    assert said == ["pydantic ruamel", ""]


def test_no_secret_is_written_to_the_cache(home: Path) -> None:
    (home / FILE).write_text(WHOLE)
    loaded(home)
    kept = memory(home).read_text()
    assert [secret for secret in SECRETS if secret in kept] == []


def test_a_secret_with_an_escaped_spelling_is_not_cached(home: Path) -> None:
    (home / FILE).write_text('providers: {mine: {base_url: "http://127.0.0.1:9", api_key: "sk-\\u0061bcdefgh"}}\n')
    loaded(home)
    assert "sk-abcdefgh" not in (memory(home).read_text() if memory(home).exists() else "")
    environ = {"MOOT_PROVIDERS__MINE__API_KEY": "1234567890", "MOOT_PROVIDERS__MINE__BASE_URL": "http://127.0.0.1:9"}
    (home / FILE).unlink()
    assert loaded(home, environ).settings.providers["mine"].api_key == "1234567890"
    assert "1234567890" not in memory(home).read_text() if memory(home).exists() else True


@pytest.mark.parametrize("broken", [b"", b"\0\xff\n{}", b"{}", b"0\n[]"], ids=["empty", "bytes", "no checksum", "wrong checksum"])
def test_a_damaged_cache_is_discarded(home: Path, broken: bytes) -> None:
    (home / FILE).write_text(WHOLE)
    first = loaded(home)
    memory(home).write_bytes(broken)
    assert loaded(home) == first


def test_a_truncated_cache_is_discarded(home: Path) -> None:
    (home / FILE).write_text(WHOLE)
    first = loaded(home)
    whole = memory(home).read_bytes()
    for end in range(0, len(whole), 97):
        memory(home).write_bytes(whole[:end])
        assert loaded(home) == first


def test_a_change_is_seen_at_once(home: Path) -> None:
    for steps in (3, 4, 3):
        (home / FILE).write_text(f"limits: {{steps: {steps}}}\n")
        assert loaded(home, {}).settings.limits.steps == steps
    assert loaded(home, {"MOOT_LIMITS__STEPS": "9"}).settings.limits.steps == 9
    (home / FILE).write_text("limits: {stepps: 3}\n")
    for _ in range(2):
        with pytest.raises(ConfigError, match="stepps"):
            loaded(home, {})


def test_a_missing_home_is_not_created(tmp_path: Path) -> None:
    loaded(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


@given(main=texts, key=texts, instructions=texts)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_survives_the_cache(home: Path, main: str, key: str, instructions: str) -> None:
    def scalar(text: str) -> str:
        return '"' + "".join(f"\\U{ord(character):08x}" if not character.isalnum() else character for character in text) + '"'

    lines = f"models: {{main: {scalar(main)}}}\nproviders: {{mine: {{base_url: 'http://x', api_key: {scalar(key)}}}}}\n"
    (home / FILE).write_text(f"{lines}agents: {{a: {{instructions: {scalar(instructions)}}}}}\n", encoding="utf-8")
    assert loaded(home, {}) == loaded(home, {})


def test_the_sections_are_those_of_the_schema() -> None:
    assert tuple(Configuration.model_fields) == SECTIONS
