"""`moot verify --upgrade`: translate old runs again with newer converters."""

from __future__ import annotations

from contextlib import aclosing

from moot.cli.output import Output
from moot.cli.progress import Progress
from moot.convert.translators import translator_of
from moot.types.canonical import Json
from moot.types.verify import Translations, Upgrade

SHOWN = 200
"""Maximum number of runs printed one by one. The others are counted."""


async def upgrade(translations: Translations, conversation: str | None, output: Output, *, store: bool, json: bool) -> int:
    """Print what changes in each run and store the new translation. Return 1 if a run had to be skipped."""
    progress = Progress(output)
    shown: list[Upgrade] = []
    changed = same = skipped = 0
    async with aclosing(translations.upgrade(translator_of, conversation=conversation, store=store)) as upgrades:
        async for each in upgrades:
            if each.skipped:
                skipped += 1
            elif each.events or each.endings:
                changed += 1
            else:
                same += 1
            if len(shown) < SHOWN and (each.skipped or each.events or each.endings):
                shown.append(each)
                if not json:
                    progress.close()
                    _print(each, output)
            progress.show(f"{changed + same + skipped:,} runs translated again")
    progress.close()
    if json:
        counts: dict[str, Json] = {"changed": changed, "same": same, "skipped": skipped}
        output.json({"ok": not skipped, "stored": store, **counts, "data": list[Json]([each.to_json() for each in shown])})
        return 1 if skipped else 0
    if (left := changed + skipped - len(shown)) > 0:
        output.data(f"… and {left:,} more\n")
    output.data(_summary(changed, same, skipped, store=store))
    return 1 if skipped else 0


def _summary(changed: int, same: int, skipped: int, *, store: bool) -> str:
    if not changed and not same and not skipped:
        return "nothing to do: all runs are translated by the newest converters\n"
    done = "stored next to the first translation" if store else "nothing was stored (dry run)"
    left = f"; {skipped:,} skipped" if skipped else ""
    return f"{changed:,} changed, {same:,} unchanged{left}; {done}\n"


def _print(each: Upgrade, output: Output) -> None:
    name = f"run {each.run}" if each.run else f"{len(each.exchanges)} calls outside of runs"
    output.data(output.styled(output.fit(f"{each.conversation}: {name}"), "bold") + "\n")
    output.line(f"  {', '.join(each.converters)}")
    if each.skipped:
        output.line(f"  skipped: {each.skipped}")
        return
    before, after = each.chunks
    endings = f", {each.endings:,} with a different ending" if each.endings else ""
    output.line(f"  {each.events:,} events with different chunks ({before:,} → {after:,} in total){endings}")
    for where, old, new in each.differences:
        output.line(f"  {where}")
        output.data(output.styled(f"    - {output.fit(old)}", "red") + "\n")
        output.data(output.styled(f"    + {output.fit(new)}", "green") + "\n")
