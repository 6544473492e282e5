"""The section `task_watchers` of the configuration."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from moot.config.loader import FILE, load
from moot.errors import ConfigError
from moot.types.task import TaskWatcher


def loaded(home: Path, text: str) -> dict[str, TaskWatcher]:
    (home / FILE).write_text(text)
    return dict(load(home=home, environ={}, directory=home).settings.task_watchers)


def test_a_task_watcher_has_defaults_for_all_but_its_prompt(tmp_path: Path) -> None:
    text = """
task_watchers:
  triage: {prompt: "#{{task.number}}"}
  review: {prompt: "{{ changes }}", project: shop, events: [status], statuses: [in_review], tags: [ui], debounce: 1m, directory: ~/shop}
"""
    watchers = loaded(tmp_path, text)
    triage, review = watchers["triage"], watchers["review"]
    assert (triage.debounce, triage.max_runs, triage.enabled, triage.unattended, triage.directory) == (5, 1, True, "deny", "")
    assert triage.events == {"created", "status", "updated", "commented"}
    assert (review.project, review.events, review.statuses, review.tags) == ("shop", {"status"}, {"in_review"}, {"ui"})
    assert (review.debounce, review.directory) == (60, str(Path.home() / "shop"))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ("{}", "required key 'prompt'"),
        ('{prompt: "{{task.titel}}"}', "Unknown variable 'task.titel' in the prompt. Known: changes, comment, project.id"),
        ("{prompt: x, statuses: [finished]}", "Expected 'backlog', 'in_progress', 'blocked', 'in_review', 'done' or 'archived'"),
        ("{prompt: x, events: []}", "at least 1 item"),
        ("{prompt: x, promt: y}", "Did you mean 'prompt'?"),
    ],
)
def test_an_invalid_task_watcher_is_reported(tmp_path: Path, values: str, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        loaded(tmp_path, f"task_watchers: {{w: {values}}}\n")
