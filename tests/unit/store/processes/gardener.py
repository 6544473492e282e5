"""Change the tree of one conversation as given by a list of numbers. Print the number of changes to stdout."""

import asyncio
import random
import sys
from pathlib import Path

from moot.config.settings import Settings
from moot.errors import Busy, UsageError
from moot.store import SqliteStore, open_store
from moot.types.chunk import finish
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.message import Message, text_part
from moot.types.run import Run
from moot.types.store import End, Fold, Submission

DEEDS = ("say", "edit", "again", "rewrite", "graft", "delete", "restore", "switch", "cut", "fork", "aside")


class Gardener:
    """The operations, on the message selected by the numbers."""

    def __init__(self, store: SqliteStore, conversation: Conversation) -> None:
        self.store = store
        self.conversation = conversation
        self.forks: list[Conversation] = []

    async def do(self, deed: str, number: int) -> None:
        """Apply an operation. Do nothing if the current tree does not allow it."""
        nodes = await self.store.tree.nodes(self.conversation.id)
        if not nodes and deed != "say":
            return
        node = nodes[number % len(nodes)] if nodes else None
        id = node.id if node is not None else ""
        tree, conversation = self.store.tree, self.conversation.id
        try:
            match deed:
                case "say":
                    await self._run(Message(new_id(), "user", (text_part(f"say {number}"),)))
                case "edit":
                    await self._run(Message(new_id(), "user", (text_part(f"edit {number}"),)), edits=id)
                case "again":
                    await self._run(None, answers=id)
                case "rewrite":
                    await tree.edit(id, [text_part(f"rewrite {number}")])
                case "graft":
                    new = [Message(new_id(), "user", (text_part("a"),)), Message(new_id(), "assistant", (text_part("b"),))]
                    await tree.graft(conversation, id if number % 3 else None, new)
                case "delete":
                    await tree.delete(conversation, [id, nodes[number // 7 % len(nodes)].id])
                case "restore":
                    await tree.delete(conversation, [id], restore=True)
                case "switch":
                    await tree.switch(conversation, id)
                case "cut":
                    await tree.switch(conversation, id, exactly=True)
                case "fork":
                    self.forks.append(await tree.fork(conversation, message=id))
                case _:
                    said = Message(new_id(), "user", (text_part("x"),), conversation=conversation, parent=id)
                    await self.store.conversations.add_message(said, move_head=number % 2 == 0)
        except (Busy, UsageError):
            pass

    async def _run(self, user: Message | None, **more: str) -> None:
        run = Run(new_id(), self.conversation.id, new_id())
        accepted = await self.store.records.submit(Submission(run, self.conversation, user, owner="me", **more))  # type: ignore[arg-type]
        deltas = ({"type": "text-start", "id": "0"}, {"type": "text-delta", "id": "0", "delta": "yes"}, {"type": "text-end", "id": "0"})
        events = [Event("raw", deltas, b"x\n", run.id, f"{run.id}:1.0"), Event("chunks", (finish("stop"),), run=run.id)]  # type: ignore[arg-type]
        parts = ({**text_part("yes")},)
        changes = (Fold(parts, {}, "finished"), End("finished"))
        await self.store.log.append(self.conversation.id, events, fence=accepted.fence, changes=changes)


async def main(*arguments: str) -> None:
    home, conversation, seed, count = arguments
    store = await open_store(Settings(home=Path(home)))
    gardener = Gardener(store, await store.conversations.get(conversation))
    chance = random.Random(seed)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for _ in range(int(count)):
        await gardener.do(chance.choice(DEEDS), chance.randrange(10_000))
    sys.stdout.write(f"{len(gardener.forks)}\n")
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
