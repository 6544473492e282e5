"""Errors in the section `sandbox`, and in rules that concern it."""

from __future__ import annotations

from pathlib import Path

import pytest

from moot.config.loader import FILE, load
from moot.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        ("sandbox: {writable: [work]}", ":1:22:", "sandbox.writable[0]: Expected an absolute path"),
        ("sandbox: {writable: [/]}", ":1:22:", "sandbox.writable[0]: Expected an absolute path"),
        ("sandbox: {enabled: false, required: true}", ":1:37:", "A required sandbox can't be turned off"),
        ("permissions: {rules: [{tool: shell, action: ask, network: true}]}", ":1:59:", "This applies only to rules that allow commands"),
        (
            "permissions: {rules: [{tool: fetch_url, action: allow, network: true}]}",
            ":1:65:",
            "This applies only to rules that allow commands",
        ),
    ],
)
def test_a_contradiction_is_an_error_with_its_place(tmp_path: Path, text: str, where: str, words: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(home=tmp_path, environ={}, directory=tmp_path)
    assert f"{tmp_path / FILE}{where}" in caught.value.message
    assert words in caught.value.message
