"""`/model`."""

from __future__ import annotations

from collections.abc import Sequence

from moot.commands.command import Choice, Choose, Reply, Say, Situation
from moot.commands.models import model_choices

__all__ = ["Model"]


class Model:
    help = "answer with another model from the next prompt on"
    argument = "[MODEL]"

    async def choices(self, situation: Situation) -> Sequence[Choice]:
        return await model_choices(situation)

    async def run(self, situation: Situation, argument: str) -> Sequence[Reply]:
        if not argument:
            return [Choose("Model", await model_choices(situation))]
        chosen = await situation.engine.providers.choice(argument)
        situation.wishes.model = str(chosen.model.id)
        if (conversation := await situation.current()) is not None:
            await situation.engine.store.conversations.update(conversation.id, model=situation.wishes.model)
        return [Say(f"{chosen.model.id} from the next prompt on", "dim")]
