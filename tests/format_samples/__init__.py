"""Sample sources of the built-in formats, by format and name."""

from __future__ import annotations

from collections.abc import Mapping

from format_samples import agents, apps, cherry, claude, codex, editors, plain, talkcody
from moot.types.format import Format, HasSamples, Sample

__all__ = ["samples_of"]

_SAMPLES: dict[str, Mapping[str, Sample]] = {
    **agents.SAMPLES,
    **apps.SAMPLES,
    **editors.SAMPLES,
    **plain.SAMPLES,
    "cherry": cherry.samples(),
    "claude": claude.SAMPLES,
    "codex": codex.SAMPLES,
    "talkcody": {"database": talkcody.sample()},
}


def samples_of(format: Format) -> Mapping[str, Sample]:
    """Return the samples of a built-in format, or those that a plugin's format provides."""
    return format.samples if isinstance(format, HasSamples) else _SAMPLES.get(format.name, {})
