from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from moot.convert.fold import Folder, abandoned, fold_parts, in_history, merge
from moot.convert.unfold import for_version, unfold
from moot.types.chunk import Chunk, problems
from moot.types.message import Message

NAMES = st.sampled_from(["a", "b"])
METADATA = st.none() | st.sampled_from([{"x": {"sig": "s1"}}, {"x": {"sig": "s2"}}])
VALUES = st.none() | st.integers(-3, 3) | st.text(max_size=3) | st.lists(st.integers(0, 2), max_size=2)
PIECES = st.sampled_from(["", "{", '{"a', '": [1, 2', "]", "}", '"te', "\\u00e4", "tru", "-", "1.", " x"])


def _chunk(kind: str, /, **fields: st.SearchStrategy[object]) -> st.SearchStrategy[Chunk]:
    optional = {name.removeprefix("opt_"): value for name, value in fields.items() if name.startswith("opt_")}
    required = {name: value for name, value in fields.items() if not name.startswith("opt_")}
    made = st.fixed_dictionaries({"type": st.just(kind), **required}, optional=optional)
    return made.map(lambda chunk: {key: value for key, value in chunk.items() if key in required or value is not None})


CALL = {"toolCallId": NAMES, "toolName": st.sampled_from(["read", "write"])}
EXTRA = {
    "opt_providerMetadata": METADATA,
    "opt_toolMetadata": st.just({"vendorId": "v"}),
    "opt_dynamic": st.just(True),
    "opt_title": st.just("T"),
    "opt_providerExecuted": st.booleans(),
}
RESULT = {key: value for key, value in EXTRA.items() if key not in ("opt_title",)}

CHUNKS: st.SearchStrategy[Chunk] = st.one_of(
    *(
        strategy
        for kind in ("text", "reasoning")
        for strategy in (
            _chunk(f"{kind}-start", id=NAMES, opt_providerMetadata=METADATA),
            _chunk(f"{kind}-delta", id=NAMES, delta=st.text(max_size=3), opt_providerMetadata=METADATA),
            _chunk(f"{kind}-end", id=NAMES, opt_providerMetadata=METADATA),
        )
    ),
    _chunk("text-end", id=NAMES, opt_citations=st.just([{"a": 1}])),
    _chunk("tool-input-start", **CALL, **EXTRA, opt_inputEncoding=st.sampled_from(["json", "text"])),
    _chunk("tool-input-delta", toolCallId=NAMES, inputTextDelta=PIECES),
    _chunk("tool-input-delta", toolCallId=NAMES, inputTextDelta=PIECES),
    _chunk("tool-input-available", **CALL, **EXTRA, input=VALUES),
    _chunk("tool-input-error", **CALL, **EXTRA, input=VALUES, errorText=st.just("bad")),
    _chunk(
        "tool-approval-request",
        toolCallId=NAMES,
        approvalId=NAMES,
        opt_reason=st.just("why"),
        opt_isAutomatic=st.booleans(),
        opt_signature=st.just("s"),
        opt_approvalDescriptor=st.just({"o": 1}),
        opt_inputSchemaInput=st.just({"i": 1}),
    ),
    _chunk("tool-approval-response", approvalId=NAMES, approved=st.booleans(), opt_reason=st.just("r"), opt_providerMetadata=METADATA),
    _chunk("tool-output-available", toolCallId=NAMES, output=VALUES, opt_preliminary=st.booleans(), **RESULT),
    _chunk("tool-output-error", toolCallId=NAMES, errorText=st.just("no"), **RESULT),
    _chunk("tool-output-denied", toolCallId=NAMES),
    _chunk("source-url", sourceId=NAMES, url=st.just("https://x"), opt_title=st.just("t")),
    _chunk("source-document", sourceId=NAMES, mediaType=st.just("a/b"), title=st.just("t"), opt_filename=st.just("f")),
    _chunk("file", url=st.just("data:,x"), mediaType=st.just("text/plain"), opt_providerMetadata=METADATA),
    _chunk("reasoning-file", url=st.just("data:,x"), mediaType=st.just("text/plain")),
    _chunk("custom", kind=st.just("a.b"), opt_providerMetadata=METADATA),
    _chunk("data-plan", data=VALUES, opt_id=NAMES, opt_transient=st.booleans()),
    _chunk("steering-message", id=NAMES, parts=st.just([{"type": "text", "text": "go"}])),
    _chunk("start-step"),
    _chunk("finish-step"),
    _chunk("reset-step"),
    _chunk("start", messageId=NAMES, opt_messageMetadata=st.just({"a": {"b": 1}})),
    _chunk("message-metadata", messageMetadata=st.just({"a": {"c": 2}})),
    _chunk("unheard-of", thing=VALUES),
    _chunk("error", errorText=st.just("e")),
    _chunk("abort"),
)
STREAMS = st.lists(CHUNKS, max_size=24)


@given(STREAMS, STREAMS)
@settings(max_examples=150, deadline=None)
def test_a_fold_continues_from_stored_parts(first: list[Chunk], second: list[Chunk]) -> None:
    assert fold_parts(fold_parts((), first), second) == fold_parts((), [*first, *second])


@given(STREAMS)
@settings(max_examples=50, deadline=None)
def test_snapshots_do_not_change_the_fold(chunks: list[Chunk]) -> None:
    folder = Folder()
    seen = []
    for chunk in chunks:
        folder.feed(chunk)
        seen.append((folder.parts(), [dict(part) for part in folder.parts()]))
    assert folder.parts() == fold_parts((), chunks)
    assert all(list(parts) == copy for parts, copy in seen)


@given(st.lists(st.dictionaries(st.sampled_from(["type", "id", "delta", "toolCallId", "toolName", "data"]), VALUES)))
def test_invalid_lines_are_ignored(chunks: list[Chunk]) -> None:
    fold_parts((), chunks)
    fold_parts(tuple(chunks), [{"type": "text-delta", "id": "a", "delta": "x"}, {"type": "tool-output-denied", "toolCallId": "a"}])


def _parts(*chunks: Chunk) -> list[Chunk]:
    return list(fold_parts((), chunks))


def test_text_has_an_id_only_while_it_streams() -> None:
    start: Chunk = {"type": "text-start", "id": "0.0.0"}
    delta: Chunk = {"type": "text-delta", "id": "0.0.0", "delta": "hi"}
    assert _parts(start, delta) == [{"type": "text", "id": "0.0.0", "text": "hi", "state": "streaming"}]
    assert _parts(start, delta, {"type": "text-end", "id": "0.0.0"}) == [{"type": "text", "text": "hi", "state": "done"}]


def test_a_delta_for_an_unknown_id_opens_a_part() -> None:
    assert _parts({"type": "reasoning-delta", "id": "r", "delta": "hm"}) == [
        {"type": "reasoning", "id": "r", "text": "hm", "state": "streaming"}
    ]


def test_streamed_tool_input_is_shown_as_far_as_it_goes() -> None:
    start: Chunk = {"type": "tool-input-start", "toolCallId": "c", "toolName": "read"}
    delta: Chunk = {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": '{"path": "a.t'}
    assert _parts(start, delta) == [
        {"type": "tool-read", "toolCallId": "c", "state": "input-streaming", "input": {"path": "a.t"}, "rawInput": '{"path": "a.t'}
    ]
    available: Chunk = {"type": "tool-input-available", "toolCallId": "c", "toolName": "read", "input": {"path": "a.txt"}}
    assert _parts(start, delta, available) == [
        {"type": "tool-read", "toolCallId": "c", "state": "input-available", "input": {"path": "a.txt"}}
    ]


def test_a_call_is_approved_and_answered() -> None:
    parts = _parts(
        {"type": "tool-input-available", "toolCallId": "c", "toolName": "shell", "input": {}, "toolMetadata": {"vendorId": "v"}},
        {"type": "tool-approval-request", "toolCallId": "c", "approvalId": "p", "reason": "writes"},
        {"type": "tool-approval-response", "approvalId": "p", "approved": True, "reason": "fine"},
        {"type": "tool-output-available", "toolCallId": "c", "output": "1", "preliminary": True},
        {"type": "tool-output-available", "toolCallId": "c", "output": "12"},
    )
    assert parts == [
        {
            "type": "tool-shell",
            "toolCallId": "c",
            "state": "output-available",
            "input": {},
            "toolMetadata": {"vendorId": "v"},
            "approval": {"id": "p", "requestReason": "writes", "approved": True, "reason": "fine"},
            "output": "12",
        }
    ]


def test_a_later_step_finds_the_call_of_an_earlier_one() -> None:
    parts = _parts(
        {"type": "start-step"},
        {"type": "tool-input-available", "toolCallId": "c", "toolName": "shell", "input": {}},
        {"type": "start-step"},
        {"type": "tool-output-denied", "toolCallId": "c"},
    )
    assert [part.get("state", part["type"]) for part in parts] == ["step-start", "output-denied", "step-start"]


def test_data_is_replaced_in_place_and_transient_data_is_not_stored() -> None:
    parts = _parts(
        {"type": "data-plan", "id": "1", "data": {"a": 1}},
        {"type": "data-plan", "data": 0},
        {"type": "data-plan", "id": "1", "data": {"a": 2}},
        {"type": "data-plan", "id": "1", "data": {"a": 3}, "transient": True},
    )
    assert parts == [{"type": "data-plan", "id": "1", "data": {"a": 2}}, {"type": "data-plan", "data": 0}]


def test_reset_step_forgets_the_step() -> None:
    parts = _parts(
        {"type": "start-step"},
        {"type": "text-start", "id": "a"},
        {"type": "text-end", "id": "a"},
        {"type": "start-step"},
        {"type": "text-start", "id": "b"},
        {"type": "reset-step"},
    )
    assert [part["type"] for part in parts] == ["step-start", "text", "step-start"]


def test_an_abandoned_attempt_never_enters_history() -> None:
    parts = _parts(
        {"type": "start-step"},
        {"type": "text-delta", "id": "0.0.0", "delta": "kept"},
        {"type": "text-end", "id": "0.0.0"},
        {"type": "start-step"},
        {"type": "text-delta", "id": "1.0.0", "delta": "lost"},
        {"type": "text-end", "id": "1.0.0"},
        {"type": "data-attempt", "id": "1.0", "data": {"step": 1, "attempt": 0, "abandoned": True}},
        {"type": "text-delta", "id": "1.1.0", "delta": "again"},
        {"type": "data-attempt", "id": "1.1", "data": {"step": 1, "attempt": 1, "abandoned": False}},
    )
    kept = in_history(parts)
    assert [part.get("text", part["type"]) for part in kept] == ["step-start", "kept", "step-start", "again", "data-attempt"]
    assert abandoned(parts) == {3, 4} and in_history(kept) == kept


def test_metadata_is_merged_at_every_depth() -> None:
    folder = Folder(metadata={"usage": {"input": 1}})
    folder.feed({"type": "start", "messageId": "m", "messageMetadata": {"model": "x"}})
    folder.feed({"type": "message-metadata", "messageMetadata": {"usage": {"output": 2}}})
    folder.feed({"type": "finish", "messageMetadata": None})
    assert folder.metadata() == {"usage": {"input": 1, "output": 2}, "model": "x"}
    assert merge({"a": [1]}, {"a": {"b": 1}}) == {"a": {"b": 1}}


def test_a_hundred_thousand_deltas_are_joined_once() -> None:
    folder = Folder()
    for _ in range(100_000):
        folder.feed({"type": "text-delta", "id": "a", "delta": "x" * 20})
    assert len(str(folder.parts()[0]["text"])) == 2_000_000


@given(STREAMS)
@settings(max_examples=250, deadline=None)
def test_folding_an_unfolded_message_restores_it(chunks: list[Chunk]) -> None:
    folder = Folder()
    for chunk in chunks:
        folder.feed(chunk)
    message = Message("m", "assistant", folder.parts(), folder.metadata())
    unfolded = unfold(message)
    again = Folder()
    for chunk in unfolded:
        again.feed(chunk)
    assert again.parts() == message.parts and again.metadata() == message.metadata
    assert [problem for chunk in unfolded for problem in problems(chunk, 7)] == []
    assert [chunk["type"] for chunk in unfolded].count("start") == 1
    assert not {"finish", "error", "abort"} & {str(chunk["type"]) for chunk in unfolded}


@given(STREAMS, STREAMS)
@settings(max_examples=80, deadline=None)
def test_a_client_that_joins_late_ends_with_the_same_message(before: list[Chunk], after: list[Chunk]) -> None:
    joined = unfold(Message("m", "assistant", fold_parts((), before)))
    assert fold_parts((), [*joined, *after]) == fold_parts((), [*before, *after])


@given(STREAMS)
@settings(max_examples=80, deadline=None)
def test_a_version_6_client_accepts_all_chunks(chunks: list[Chunk]) -> None:
    fitted = for_version(chunks, 6)
    assert [problem for chunk in fitted for problem in problems(chunk, 6)] == []
    assert for_version(fitted, 6) == fitted


def test_version_6_gets_steering_as_data_and_no_reset() -> None:
    steering: Chunk = {"type": "steering-message", "id": "s", "parts": [{"type": "text", "text": "go"}]}
    assert for_version([steering, {"type": "reset-step"}, {"type": "finish", "finishReason": "interrupted"}], 6) == (
        {"type": "data-steering", "data": {"parts": [{"type": "text", "text": "go"}]}, "id": "s"},
        {"type": "finish", "finishReason": "other"},
    )
    assert for_version([steering], 7) == (steering,)


def test_an_open_part_stays_open_in_an_unfolded_message() -> None:
    parts = fold_parts((), [{"type": "text-delta", "id": "0.0.0", "delta": "hel"}, {"type": "text-delta", "id": "0.0.0", "delta": "lo"}])
    assert unfold(Message("m", "assistant", parts)) == (
        {"type": "start", "messageId": "m"},
        {"type": "text-start", "id": "0.0.0"},
        {"type": "text-delta", "id": "0.0.0", "delta": "hello"},
    )
