"""Shorter tool outputs, the border of a summary, and the pieces that are summarized."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from moot.agents.window import RECENT, first_kept, fitted, latest_plan, off_loop, pieces, shorten_outputs, summary_message
from moot.types.message import Message, Part, Role, text_of, text_part
from moot.types.tree import Compaction

LONG = "a line of output\n" * 100


def call(name: str, output: Any, **arguments: Any) -> Part:
    return {"type": f"tool-{name}", "toolCallId": "c", "state": "output-available", "input": arguments, "output": output}


def message(role: Role, *parts: Part, status: Any = "finished") -> Message:
    return Message("m", role, parts, status=status)


def outputs(messages: tuple[Message, ...]) -> list[str]:
    return [str(part["output"]) for one in messages for part in one.parts]


def talk(count: int, text: str = "word") -> list[Message]:
    return [message("assistant" if at % 2 else "user", text_part(text)) for at in range(count)]


def test_of_a_file_read_twice_the_older_output_is_replaced_by_a_note() -> None:
    others = [call("shell", LONG, command=f"ls {at}") for at in range(RECENT)]
    short = shorten_outputs([message("assistant", call("read_file", LONG, path="a"), *others[:-1], call("read_file", LONG, path="a"))])
    assert "was called again" in outputs(short)[0]
    assert outputs(short)[1:] == [LONG] * RECENT


def test_outputs_far_back_keep_their_first_lines_and_the_border_moves_in_steps() -> None:
    def shortened(count: int) -> int:
        made = shorten_outputs([message("assistant", *(call("shell", LONG, command=str(at)) for at in range(count)))])
        return sum("[Shortened" in output for output in outputs(made))

    counts = (RECENT, 2 * RECENT - 1, 2 * RECENT, 3 * RECENT - 1, 3 * RECENT)
    assert [shortened(count) for count in counts] == [0, 0, RECENT, RECENT, 2 * RECENT]
    calls = [call("shell", LONG, command=str(at)) for at in range(2 * RECENT)]
    first = outputs(shorten_outputs([message("assistant", *calls)]))[0]
    assert first.startswith("a line of output\na line of output\n") and len(first) < 300


def test_the_newest_to_do_list_small_outputs_and_files_stay_whole() -> None:
    todo = call("todo", LONG, todos=[{"content": "x", "status": "completed"}])
    picture = call("shell", {"type": "content", "value": [{"type": "file", "url": "data:"}] * 50}, command="p")
    later = [call("shell", "short", command=str(at)) for at in range(3 * RECENT)]
    before = (message("assistant", todo, picture, *later),)
    assert shorten_outputs(before) == before
    assert latest_plan(before) == "[x] x"
    assert latest_plan(talk(2), "[ ] older") == "[ ] older"


def test_the_last_messages_are_kept_from_a_prompt_on() -> None:
    assert [first_kept(talk(9), keep) for keep in (1, 2, 3, 4, 20)] == [8, 6, 6, 4, 0]
    assert first_kept([], 6) == 0


def test_fewer_messages_are_kept_if_they_are_too_long_but_always_the_prompt() -> None:
    assert first_kept(talk(9, "word " * 400), 6, room=2_500) == 7
    assert first_kept(talk(9, "word " * 4_000), 6, room=100) == 8


def test_a_live_message_is_never_summarized() -> None:
    live = [*talk(3), message("assistant", status="streaming"), *talk(8)]
    assert first_kept(live, 2) == 2


def test_the_pieces_are_the_newest_messages_in_order() -> None:
    numbered = [message("user", text_part(f"{at} " + "word " * 80)) for at in range(10)]
    made = pieces(numbered, 210, 3)
    assert [[text_of(one.parts)[0] for one in piece] for piece in made] == [["4", "5"], ["6", "7"], ["8", "9"]]
    assert pieces(numbered, 1, 20) == [[one] for one in numbered]


def test_trimming_keeps_the_summary() -> None:
    summary = summary_message(Compaction("m", "what was said"))
    kept = fitted((summary, *talk(41, "word " * 100)), 0, 1_000)
    assert kept[0] is summary and 2 <= len(kept) < 12


@pytest.mark.anyio
@pytest.mark.parametrize(("count", "in_thread"), [(20, False), (5_000, True)])
async def test_a_computation_over_many_messages_leaves_the_event_loop_free(count: int, in_thread: bool) -> None:
    used, length = await off_loop(talk(count), lambda messages: (threading.get_ident(), len(messages)))
    assert (used != threading.get_ident(), length) == (in_thread, count)
