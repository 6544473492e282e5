import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.errors import UsageError
from moot.guard.processes import child_environment, forbidden

HARMLESS = {"PATH": "/usr/bin", "HOME": "/home/me", "LANG": "C.UTF-8", "LC_ALL": "C", "TERM": "xterm", "USER": "me", "TMPDIR": "/tmp"}
HARMFUL = [
    "MOOT_TOKEN",
    "MOOT_HOME",
    "ANTHROPIC_API_KEY",
    "GITHUB_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "BASH_ENV",
    "ENV",
    "GIT_SSH_COMMAND",
    "GIT_DIR",
    "NODE_OPTIONS",
    "PERL5OPT",
    "BASH_FUNC_ls%%",
    "DB_PASSWORD",
    "ld_preload",
]


def test_harmless_variables_pass():
    assert child_environment(source=HARMLESS) == HARMLESS


@pytest.mark.parametrize("name", HARMFUL)
def test_harmful_variables_are_not_passed_on(name: str):
    assert child_environment(source={**HARMLESS, name: "x"}) == HARMLESS


@pytest.mark.parametrize("name", HARMFUL)
def test_a_setting_cannot_pass_on_harmful_variables(name: str):
    with pytest.raises(UsageError, match="never passed"):
        child_environment([name], HARMLESS)


def test_settings_add_names():
    assert child_environment(["VIRTUAL_ENV"], {**HARMLESS, "VIRTUAL_ENV": "/v"}) == {**HARMLESS, "VIRTUAL_ENV": "/v"}
    assert child_environment(["VIRTUAL_ENV"], HARMLESS) == HARMLESS


@pytest.mark.parametrize(
    ("path", "safe"),
    [
        (".:/usr/bin", "/usr/bin"),
        ("/usr/bin::/bin", "/usr/bin:/bin"),
        (":/bin:", "/bin"),
        ("bin:./x:/bin", "/bin"),
        ("", "/usr/local/bin:/usr/bin:/bin"),
        (".", "/usr/local/bin:/usr/bin:/bin"),
    ],
)
def test_path_has_no_relative_entries(path: str, safe: str):
    assert child_environment(source={"PATH": path})["PATH"] == safe


@given(st.dictionaries(st.text(), st.text()))
def test_unknown_variables_are_not_passed_on(source: dict[str, str]):
    child = child_environment(source={f"X{name}": value for name, value in source.items()})
    assert set(child) == {"PATH"}


def test_forbidden_names_are_forbidden_in_any_case():
    assert forbidden("my_api_key")
    assert not forbidden("EDITOR")
