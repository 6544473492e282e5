"""`moot verify --upgrade`: what newer converters make of old runs."""

from __future__ import annotations

from contextlib import aclosing

from moot.cli.output import Output
from moot.cli.progress import Progress
from moot.convert.translators import translator_of
from moot.types.canonical import Json
from moot.types.verify import Translations, Upgrade

SHOWN = 200
"""Runs that are told one by one; the others are counted."""


async def upgrade(translations: Translations, conversation: str | None, output: Output, *, store: bool, json: bool) -> int:
    """Tells, run by run, what becomes other, and stores it; exit code 1 when a run had to be left as it is."""
    progress = Progress(output)
    told: list[Upgrade] = []
    changed = same = skipped = 0
    async with aclosing(translations.upgrade(translator_of, conversation=conversation, store=store)) as upgrades:
        async for each in upgrades:
            if each.skipped:
                skipped += 1
            elif each.events or each.endings:
                changed += 1
            else:
                same += 1
            if len(told) < SHOWN and (each.skipped or each.events or each.endings):
                told.append(each)
                if not json:
                    progress.close()
                    _print(each, output)
            progress.show(f"{changed + same + skipped:,} runs translated again")
    progress.close()
    if json:
        counts: dict[str, Json] = {"changed": changed, "same": same, "skipped": skipped}
        output.json({"ok": not skipped, "stored": store, **counts, "data": list[Json]([each.to_json() for each in told])})
        return 1 if skipped else 0
    if (left := changed + skipped - len(told)) > 0:
        output.data(f"… and {left:,} more\n")
    output.data(_sum(changed, same, skipped, store=store))
    return 1 if skipped else 0


def _sum(changed: int, same: int, skipped: int, *, store: bool) -> str:
    if not changed and not same and not skipped:
        return "nothing to do: no newer converter is here than those whose chunks are shown\n"
    done = "stored beside the first translation" if store else "nothing was stored: that was a dry run"
    left = f"; {skipped:,} left as {'it is' if skipped == 1 else 'they are'}" if skipped else ""
    return f"{changed:,} changed, {same:,} the same{left}; {done}\n"


def _print(each: Upgrade, output: Output) -> None:
    name = f"run {each.run}" if each.run else f"{len(each.exchanges)} calls beside the runs"
    output.data(output.styled(output.fit(f"{each.conversation}: {name}"), "bold") + "\n")
    output.line(f"  {', '.join(each.converters)}")
    if each.skipped:
        output.line(f"  left as it is: {each.skipped}")
        return
    before, after = each.chunks
    endings = f", {each.endings:,} ends otherwise" if each.endings else ""
    output.line(f"  {each.events:,} events with other chunks ({before:,} → {after:,} in all){endings}")
    for where, old, new in each.differences:
        output.line(f"  {where}")
        output.data(output.styled(f"    - {output.fit(old)}", "red") + "\n")
        output.data(output.styled(f"    + {output.fit(new)}", "green") + "\n")
