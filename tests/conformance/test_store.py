"""Rules for every store about events, prompts and runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.stores import end, frame, prompt
from moot.errors import Busy, FenceLost, NotFound, StoreError, UsageError
from moot.types.approval import Approval
from moot.types.chunk import FINISH_STEP, START_STEP, start
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.exchange import Exchange, ExchangeOptions, Failure
from moot.types.ids import new_id
from moot.types.message import Message, text_of, text_part
from moot.types.run import OnBusy
from moot.types.store import Ask, Fold, HandleInbox, OpenExchange, Park, Store, Submission, Use
from moot.types.usage import Usage

pytestmark = pytest.mark.anyio

# ── the log ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_events_are_returned_as_stored(store: Store) -> None:
    accepted = await store.records.submit(prompt())
    run = accepted.run.id
    events = [
        frame(accepted, "a", "b"),
        Event("raw", (), b"", run, f"{run}:title:0.0"),
        Event("raw", (), None, run, "of another shape"),
        Event(
            "chunks",
            ({"type": "x-unknown", "big": 2**70, "null": None, "deep": [[{}]]},),
            run=run,
            phase="end",
            key="tool:0.0.0",
            body={"v": 2**66},
        ),
        Event("journal", run=run, phase="start", key="tool:0.1.0", body=[1, "two", None]),
        Event("of-the-future", (), b"\x00\xff", body={"a": 1}),
        Event("meta", body="text"),
    ]
    seqs = await store.log.append(accepted.conversation.id, events, fence=accepted.fence)
    stored = await store.log.read(accepted.conversation.id, after=accepted.seq)
    assert [event.seq for event in stored] == list(seqs) == list(range(accepted.seq + 1, accepted.seq + 8))
    assert [event._replace(seq=0, at=0) for event in stored] == events
    assert all(event.at > 1_700_000_000_000_000 for event in stored)


async def test_seqs_have_no_gaps_and_pages_start_after_a_position(store: Store) -> None:
    made = await store.conversations.create(Conversation(new_id()))
    assert await store.log.last_seq(made.id) == 0
    for _ in range(5):
        await store.log.append(made.id, [Event("meta", body=1)] * 3)
    assert await store.log.last_seq(made.id) == 15
    assert [event.seq for event in await store.log.read(made.id)] == list(range(1, 16))
    assert [event.seq for event in await store.log.read(made.id, after=4, limit=3)] == [5, 6, 7]
    assert await store.log.read(made.id, after=15) == []


async def test_the_events_of_one_run_can_be_selected(store: Store) -> None:
    accepted = await store.records.submit(prompt())
    id = accepted.conversation.id
    await store.log.append(id, [frame(accepted, "a")], fence=accepted.fence)
    await store.log.append(id, [Event("meta", body=1)])
    await store.log.append(id, [frame(accepted, "b")], fence=accepted.fence)
    found = await store.log.read(id, run=accepted.run.id)
    assert [event.seq for event in found] == [3, 5]
    assert [event.seq for event in await store.log.read(id, run=accepted.run.id, after=3)] == [5]
    with pytest.raises(NotFound):
        await store.log.read(id, run="nobody")


async def test_an_append_fails_completely_or_not_at_all(store: Store) -> None:
    accepted = await store.records.submit(prompt())
    begun = Event("journal", run=accepted.run.id, phase="start", key="tool:0.0.0")
    await store.log.append(accepted.conversation.id, [begun], fence=accepted.fence)
    with pytest.raises(StoreError, match=r"tool:0\.0\.0"):
        await store.log.append(accepted.conversation.id, [frame(accepted, "lost"), begun], fence=accepted.fence)
    with pytest.raises(Busy):
        await store.log.append(accepted.conversation.id, [frame(accepted, "lost")], fence=accepted.fence, changes=[Use("none", b"")])
    assert await store.log.last_seq(accepted.conversation.id) == accepted.seq + 1


async def test_only_the_newest_fence_appends(store: Store) -> None:
    accepted = await store.records.submit(prompt())
    assert accepted.fence is not None
    assert await store.records.interrupt(accepted.run.id, owner="me", fence=1)
    with pytest.raises(FenceLost, match="interrupted"):
        await store.log.append(accepted.conversation.id, [frame(accepted)], fence=accepted.fence)
    taken = await store.records.claim(accepted.run.id, "other", statuses=frozenset({"interrupted"}))
    assert taken.number == accepted.fence.number + 1
    with pytest.raises(FenceLost):
        await store.log.append(accepted.conversation.id, [frame(accepted)], fence=accepted.fence)
    await store.log.append(accepted.conversation.id, [frame(accepted)], fence=taken)
    with pytest.raises(FenceLost):
        await store.log.append(accepted.conversation.id, [frame(accepted)])
    with pytest.raises(StoreError, match="fence"):
        await store.log.append(accepted.conversation.id, [Event("meta")], changes=[HandleInbox(1)])
    elsewhere = await store.conversations.create(Conversation(new_id()))
    with pytest.raises(FenceLost):
        await store.log.append(elsewhere.id, [frame(accepted)], fence=taken)


async def test_unknown_conversations_are_named(store: Store) -> None:
    for call in (store.log.read("nowhere"), store.log.last_seq("nowhere"), store.log.append("nowhere", [Event("meta")])):
        with pytest.raises(NotFound, match="nowhere"):
            await call


# ── the fold ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_live_message_includes_all_events_so_far(store: Store) -> None:
    accepted = await store.records.submit(prompt())
    id, run = accepted.conversation.id, accepted.run
    begin = Event("chunks", (start(run.message, {"agent": "x"}), START_STEP, {"type": "text-start", "id": "0"}), run=run.id)
    seqs = await store.log.append(id, [begin, frame(accepted, "one ")], fence=accepted.fence)
    assert text_of((await store.conversations.message(run.message)).parts) == "one "
    parts = (await store.conversations.message(run.message)).parts
    await store.log.append(
        id,
        [frame(accepted, "two ")],
        fence=accepted.fence,
        changes=[Fold((*parts[:-1], {**parts[-1], "text": "one two "}), {"agent": "x"})],
    )
    await store.log.append(id, [Event("meta", body="between")])
    await store.log.append(id, [frame(accepted, "three"), Event("chunks", (FINISH_STEP,), run=run.id)], fence=accepted.fence)
    live = await store.conversations.message(run.message)
    assert text_of(live.parts) == "one two three"
    assert (live.status, live.first_seq, live.metadata) == ("streaming", seqs[0], {"agent": "x"})
    assert live.folded_through == live.last_seq == await store.log.last_seq(id)
    (_, shown) = await store.conversations.branch(id)
    assert shown == live
    await end(store, accepted)
    assert text_of((await store.conversations.message(run.message)).parts) == "one two three"


async def test_exchanges_for_other_purposes_are_not_folded_in(store: Store) -> None:
    accepted = await store.records.submit(prompt())
    run = accepted.run.id
    title = Exchange(f"{run}:title:0.0", run, accepted.conversation.id, "title", "demo", "demo/1", "demo", "m", ExchangeOptions(), {})
    await store.log.append(
        accepted.conversation.id, [Event("exchange", run=run, exchange=title.id)], fence=accepted.fence, changes=[OpenExchange(title)]
    )
    await store.log.append(accepted.conversation.id, [frame(accepted, "A title", exchange="title:0.0")], fence=accepted.fence)
    await store.log.append(accepted.conversation.id, [frame(accepted, "answer")], fence=accepted.fence)
    assert text_of((await store.conversations.message(accepted.run.message)).parts) == "answer"


# ── prompts and runs ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_prompt_creates_its_conversation_messages_and_run_at_once(store: Store) -> None:
    given = prompt()
    accepted = await store.records.submit(given)
    assert given.user is not None
    assert accepted.run.status == "running" and accepted.run.owner == "me" and accepted.fence is not None
    assert accepted.conversation.head == given.run.message
    assert accepted.conversation.message_count == 2
    user, answer = await store.conversations.branch(accepted.conversation.id)
    assert (user.id, user.parent, user.parts) == (given.user.id, None, given.user.parts)
    assert (answer.id, answer.parent, answer.run, answer.status, answer.parts) == (
        given.run.message,
        user.id,
        given.run.id,
        "streaming",
        (),
    )
    kinds = [event.kind for event in await store.log.read(accepted.conversation.id)]
    assert kinds == ["message", "tree"] and accepted.seq == 2


async def test_a_second_prompt_follows_the_answer(store: Store) -> None:
    first = await store.records.submit(prompt())
    await end(store, first)
    second = await store.records.submit(prompt(first.conversation, "more"))
    branch = await store.conversations.branch(first.conversation.id)
    assert [message.parent for message in branch] == [None, *(message.id for message in branch[:-1])]
    assert branch[-1].id == second.run.message and second.run.status == "running"


async def test_a_conversation_is_found_by_its_key(store: Store) -> None:
    first = await store.records.submit(prompt(Conversation(new_id(), key="discord:me", directory="/a")))
    await end(store, first)
    wanted = Conversation(new_id(), key="discord:me", directory="/b", agent="reviewer", model="m@p")
    again = await store.records.submit(prompt(wanted))
    assert again.conversation == await store.conversations.by_key("discord:me")
    assert (again.conversation.id, again.conversation.directory) == (first.conversation.id, "/a")
    assert (again.conversation.agent, again.conversation.model) == (first.conversation.agent, first.conversation.model)
    await end(store, again)
    named = await store.records.submit(prompt(wanted, remember=True))
    assert (named.conversation.directory, named.conversation.agent, named.conversation.model) == ("/a", "reviewer", "m@p")
    assert await store.conversations.by_key("discord:you") is None


async def test_a_busy_conversation_rejects_or_queues_in_order(store: Store) -> None:
    first = await store.records.submit(prompt())
    with pytest.raises(Busy):
        await store.records.submit(prompt(first.conversation))
    second = await store.records.submit(prompt(first.conversation, "two", on_busy="queue"))
    third = await store.records.submit(prompt(first.conversation, "three", on_busy="queue"))
    assert [second.run.status, third.run.status, second.fence] == ["queued", "queued", None]
    branch = await store.conversations.branch(first.conversation.id)
    assert [message.id for message in branch if message.role == "assistant"] == [each.run.message for each in (first, second, third)]
    with pytest.raises(Busy, match="queued behind"):
        await store.records.claim(second.run.id, "me", statuses=frozenset({"queued"}))
    await end(store, first)
    assert not await store.records.withdraw(first.run.id)
    with pytest.raises(Busy):
        await store.records.submit(prompt(first.conversation))
    with pytest.raises(Busy, match="queued behind"):
        await store.records.claim(third.run.id, "me", statuses=frozenset({"queued"}))
    fence = await store.records.claim(second.run.id, "me", statuses=frozenset({"queued"}))
    assert fence.message == second.run.message
    (seq,) = await store.log.append(fence.conversation, [frame(second, "hi")], fence=fence)
    assert (await store.records.run(second.run.id)).first_seq == seq
    assert text_of((await store.conversations.message(second.run.message)).parts) == "hi"


async def test_a_steering_message_reaches_the_running_run(store: Store) -> None:
    first = await store.records.submit(prompt())
    steer = await store.records.submit(prompt(first.conversation, "left!", on_busy="steer"))
    assert steer.steered and steer.run.id == first.run.id
    (item,) = await store.records.inbox(first.run.id)
    assert item.kind == "steer" and isinstance(item.body, dict) and item.body["parts"] == [text_part("left!")]
    await store.log.append(first.conversation.id, [], fence=first.fence, changes=[HandleInbox(item.no)])
    assert await store.records.inbox(first.run.id) == []
    assert len(await store.conversations.branch(first.conversation.id)) == 2


@pytest.mark.parametrize("on_busy", ["queue", "steer"])
async def test_a_prompt_sent_again_is_accepted_once(store: Store, on_busy: OnBusy) -> None:
    first = await store.records.submit(prompt())
    into = first.conversation

    def sent() -> Submission:
        user = Message(new_id(), "user", (text_part("left!"),), client_id="from-the-page")
        return prompt(into, user=user, on_busy=on_busy)

    once = await store.records.submit(sent())
    again = await store.records.submit(sent())
    assert (again.run.id, again.steered) == (once.run.id, once.steered)
    if on_busy == "steer":
        (item,) = await store.records.inbox(first.run.id)
        await store.log.append(into.id, [], fence=first.fence, changes=[HandleInbox(item.no)])
        await end(store, first)  # also when the message was read and its run has ended
        assert (await store.records.submit(sent())).run.id == first.run.id
    branch = await store.conversations.branch(into.id)
    assert len(branch) == (2 if on_busy == "steer" else 4)
    other = replace(sent(), user=Message(new_id(), "user", (text_part("right!"),), client_id="another"))
    assert (await store.records.submit(other)).run.id != once.run.id


async def test_unread_steering_messages_can_be_taken_back(store: Store) -> None:
    first = await store.records.submit(prompt())
    for words in ("left!", "right!"):
        await store.records.submit(prompt(first.conversation, words, on_busy="steer"))
    left, right = await store.records.inbox(first.run.id)
    assert isinstance(right.body, dict)
    assert await store.records.withdraw_steers(first.run.id, str(right.body["id"])) == [right]
    assert await store.records.withdraw_steers(first.run.id) == [left]
    assert await store.records.withdraw_steers(first.run.id) == []
    await end(store, first)  # nothing is left that the run would have to read


async def test_an_interrupting_prompt_names_the_interrupted_run(store: Store) -> None:
    first = await store.records.submit(prompt())
    second = await store.records.submit(prompt(first.conversation, on_busy="interrupt"))
    assert second.interrupts == first.run.id and second.run.status == "queued"


async def test_a_new_prompt_supersedes_a_waiting_run(store: Store) -> None:
    first = await store.records.submit(prompt())
    run = first.run.id
    call = ({"type": "tool-input-available", "toolCallId": "c1", "toolName": "shell", "input": {}},)
    half = ({"type": "tool-input-start", "toolCallId": "c2", "toolName": "shell"}, {"type": "text-delta", "id": "0", "delta": "I am"})
    request = ({"type": "tool-approval-request", "approvalId": "a1", "toolCallId": "c1"},)
    await store.log.append(first.conversation.id, [Event("chunks", call + half + request, run=run)], fence=first.fence)  # type: ignore[operator]
    approval = Approval("a1", run, "c1", "shell", b"{}", b"digest", 0)
    await store.log.append(first.conversation.id, [], fence=first.fence, changes=[Ask(approval), Park()])
    assert (await store.records.run(run)).status == "waiting"
    second = await store.records.submit(prompt(first.conversation, "never mind"))
    assert second.run.status == "running" and second.fence is not None
    assert (await store.records.run(run)).status == "cancelled"
    denied = await store.records.approval("a1")
    assert denied is not None and denied.answer is not None
    assert not denied.answer.approved and denied.answer.reason == "superseded"
    closed = await store.conversations.message(first.run.message)
    assert closed.status == "cancelled"
    assert {str(part.get("state")) for part in closed.parts} == {"done", "output-denied", "output-error"}
    with pytest.raises(FenceLost):
        await store.log.append(first.conversation.id, [frame(first)], fence=first.fence)
    assert second.seq == await store.log.last_seq(first.conversation.id)


async def test_a_run_without_a_prompt_answers_the_last_message(store: Store) -> None:
    with pytest.raises(UsageError):
        await store.records.submit(prompt(user=None))
    first = await store.records.submit(prompt())
    await end(store, first)
    again = await store.records.submit(prompt(first.conversation, user=None))
    user, answer = await store.conversations.branch(first.conversation.id)
    assert (user.role, answer.id) == ("user", again.run.message)
    assert again.conversation.message_count == 3


async def test_deleted_conversations_reject_prompts(store: Store) -> None:
    first = await store.records.submit(prompt())
    with pytest.raises(Busy):
        await store.conversations.delete(first.conversation.id)
    await end(store, first)
    assert (await store.conversations.delete(first.conversation.id)).deleted_at is not None
    with pytest.raises(NotFound, match="is deleted"):
        await store.records.submit(prompt(first.conversation))
    assert (await store.conversations.delete(first.conversation.id, restore=True)).deleted_at is None
    await store.records.submit(prompt(first.conversation))


async def test_a_run_ends_once_and_updates_the_totals(store: Store) -> None:
    first = await store.records.submit(prompt())
    usage = Usage(input=10, output=5, cache_read=2)
    await end(store, first, usage=usage, cost=700, context_usage=0.25, model="m@p")
    with pytest.raises(FenceLost):
        await end(store, first)
    run = await store.records.run(first.run.id)
    assert (run.status, run.usage, run.cost, run.owner, run.result_seq) == ("finished", usage, 700, None, 3)
    second = await store.records.submit(prompt(first.conversation))
    await end(store, second, status="failed", error=Failure("no", "auth"), usage=Usage(input=1))
    conversation = await store.conversations.get(first.conversation.id)
    assert conversation.usage == Usage(input=11, output=5, cache_read=2)
    assert (conversation.cost, conversation.unpriced_runs, conversation.context_usage, conversation.model) == (700, 1, 0.25, "m@p")
    failed = await store.records.run(second.run.id)
    assert failed.error == Failure("no", "auth")
    assert (await store.conversations.message(second.run.message)).status == "failed"


async def test_only_one_process_takes_over_a_dead_owners_run(store: Store) -> None:
    first = await store.records.submit(prompt())
    assert not await store.records.interrupt(first.run.id, owner="other", fence=1)
    assert not await store.records.interrupt(first.run.id, owner="me", fence=2)
    assert await store.records.interrupt(first.run.id, owner="me", fence=1)
    assert not await store.records.interrupt(first.run.id, owner="me", fence=1)
    assert (await store.conversations.message(first.run.message)).status == "interrupted"
    await store.records.claim(first.run.id, "a", statuses=frozenset({"interrupted"}))
    assert (await store.conversations.message(first.run.message)).status == "streaming"
    with pytest.raises(Busy):
        await store.records.claim(first.run.id, "b", statuses=frozenset({"interrupted"}))


async def test_runs_are_listed_newest_first(store: Store) -> None:
    first = await store.records.submit(prompt())
    second = await store.records.submit(prompt())
    await end(store, first)
    assert [run.id for run in await store.records.runs()] == [second.run.id, first.run.id]
    assert [run.id for run in await store.records.runs(statuses=frozenset({"finished"}))] == [first.run.id]
    assert [run.id for run in await store.records.runs(conversation=second.conversation.id, limit=1)] == [second.run.id]
    assert (await store.records.run(second.run.id)).id == second.run.id
    for reference in ("none", second.run.id[:8]):
        with pytest.raises(NotFound):
            await store.records.run(reference)
