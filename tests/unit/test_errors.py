"""The error tree: the properties that callers rely on."""

from __future__ import annotations

import re

import pytest

from moot import errors
from moot.errors import ConfigError, MootError, ProviderError

DRAWN = re.compile(r"^[│├└─ ]*(\w+)\s{2,}.*?(?:exit (\d+))?$", re.MULTILINE)
ALL = [getattr(errors, name) for name in errors.__all__]


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.__name__)
def test_every_error_is_a_moot_error_with_its_own_code(error: type[MootError]) -> None:
    assert issubclass(error, MootError)
    assert [other for other in ALL if other.code == error.code] == [error]
    assert error("it broke", fix="mend it").fix == "mend it"
    assert str(error("it broke")) == error("it broke").message == "it broke"


def test_the_error_tree_is_documented() -> None:
    drawn = {name: int(code or 1) for name, code in DRAWN.findall(errors.__doc__ or "") if name in errors.__all__}
    assert drawn == {error.__name__: error.exit_code for error in ALL}


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"file": "config.yaml", "line": 3, "column": 7}, "config.yaml:3:7: no such key"),
        ({"file": "config.yaml", "line": 3}, "config.yaml:3: no such key"),
        ({"file": "config.yaml"}, "config.yaml: no such key"),
        ({}, "no such key"),
    ],
)
def test_a_configuration_error_says_where(where: dict[str, object], said: str) -> None:
    assert str(ConfigError("no such key", **where)) == said  # pyright: ignore[reportArgumentType]


def test_a_provider_error_is_final_unless_it_says_otherwise() -> None:
    error = ProviderError("refused")
    assert (error.kind, error.retryable, error.retry_after, error.raw) == ("failed", False, None, b"")
