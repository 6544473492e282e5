"""Rules for every format, built-in or from an installed package."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance import format_content, formats, loss_counts, mutations
from moot.plugins import FORMATS
from moot.types.format import ExportedConversation, WriteOnly
from moot.types.imports import Recorder

TEXTS = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1, max_size=60), min_size=1, max_size=6)
quick = settings(max_examples=30, suppress_health_check=list(HealthCheck))


@pytest.fixture(params=FORMATS.names())
def format(request: pytest.FixtureRequest) -> Any:
    return FORMATS.make(request.param)


def test_a_format_describes_itself(format: Any) -> None:
    formats.check_itself(format)


def test_only_the_files_that_a_format_names_are_copied_from_other_machines(format: Any) -> None:
    formats.check_only_named_files_are_copied(format)


@quick
@given(texts=TEXTS)
@pytest.mark.slow
def test_messages_survive_a_round_trip(format: Any, tmp_path: Path, texts: list[str]) -> None:
    formats.check_round_trip(format, tmp_path, texts)


def test_samples_are_read_completely(format: Any, tmp_path: Path) -> None:
    assert formats.samples(format) or isinstance(format, WriteOnly)
    for data in formats.samples(format):
        assert formats.check_read(format, formats.source(format, tmp_path, data))


def test_each_source_is_claimed_by_one_format(format: Any, tmp_path: Path) -> None:
    known = [FORMATS.make(name) for name in FORMATS.names()]
    for number, data in enumerate(formats.samples(format)):
        folder = tmp_path / str(number)
        folder.mkdir()
        formats.check_claims(known, format, formats.source(format, folder, data))


def test_lost_contents_are_counted(format: Any) -> None:
    formats.check_lost_content_is_counted(format)


@pytest.mark.parametrize("data", formats.FOREIGN)
def test_foreign_files_are_not_claimed(format: Any, tmp_path: Path, data: bytes) -> None:
    formats.check_foreign(format, tmp_path, data)


@quick
@given(data=st.binary(max_size=200))
@pytest.mark.slow
def test_arbitrary_bytes_never_raise(format: Any, tmp_path: Path, data: bytes) -> None:
    formats.check_foreign(format, tmp_path, data)


@quick
@given(data=st.data(), junk=st.binary(min_size=1, max_size=30))
@pytest.mark.slow
def test_junk_in_a_file_is_survived(format: Any, tmp_path: Path, data: st.DataObject, junk: bytes) -> None:
    for sample in formats.samples(format):
        formats.check_a_broken_record(format, tmp_path, sample, data.draw(st.integers(0, formats.size_of(sample))), junk)


def test_a_broken_line_does_not_affect_others(format: Any, tmp_path: Path) -> None:
    formats.check_a_broken_line(format, tmp_path, ["one", "two", "three"])


PLAIN = frozenset({"aichat", "aider", "md"})
"""Formats of plain text, which has no fields of unknown shapes."""


def _check_mutations(format: Any, folder: Path, some: int | None) -> None:
    """Check all mutations of each sample, or a fixed selection."""
    for number, sample in enumerate(formats.samples(format)):
        place = folder / str(number)
        place.mkdir()
        original = formats.read_whole(format, formats.source(format, place, sample))
        found = list(mutations.mutations(sample, place))
        assert found or format.name in PLAIN, f"nothing in sample {number} can be changed"
        if some is not None:
            found = random.Random(number).sample(found, min(some, len(found)))
        left_out = [problem for make in found if (problem := mutations.check_mutation(format, place, original, make()))]
        if isinstance(format, Recorder):  # imported whole, not as messages
            recorded = list(format.recordings(formats.source(format, place, sample)))
            left_out += [problem for make in found if (problem := mutations.check_recording(format, place, recorded, make()))]
        assert not left_out, "\n".join(left_out)


@pytest.mark.slow
def test_content_of_an_unknown_shape_is_reported(format: Any, tmp_path: Path) -> None:
    _check_mutations(format, tmp_path, 12)


@pytest.mark.slow
def test_each_content_of_an_unknown_shape_is_reported(format: Any, tmp_path: Path) -> None:
    _check_mutations(format, tmp_path, None)


@quick
@given(conversation=format_content.conversations())
@pytest.mark.slow
def test_the_content_a_format_declares_survives_a_round_trip(format: Any, tmp_path: Path, conversation: ExportedConversation) -> None:
    format_content.check_holds(format, tmp_path, conversation)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), conversation=format_content.conversations())
def test_content_that_two_formats_support_survives_a_conversion(
    tmp_path: Path, data: st.DataObject, conversation: ExportedConversation
) -> None:
    formats = format_content.chained(FORMATS.names())
    one, other = data.draw(st.sampled_from(formats)), data.draw(st.sampled_from(formats))
    format_content.check_chain(one, other, tmp_path, conversation)


@pytest.mark.parametrize("name", [one.name for one in format_content.chained(FORMATS.names())])
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(conversation=loss_counts.everything())
@pytest.mark.slow
def test_changed_content_is_never_counted_as_kept(name: str, tmp_path: Path, conversation: ExportedConversation) -> None:
    loss_counts.check_counted(FORMATS.make(name), tmp_path, conversation)
