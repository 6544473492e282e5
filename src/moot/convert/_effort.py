"""Reasoning effort as the endpoints behind the OpenAI wire want to be asked for it."""

from __future__ import annotations

from moot.types.canonical import JsonObject
from moot.types.model import Model, ModelSettings
from moot.types.provider import Quirks


def effort_fields(settings: ModelSettings, model: Model, quirks: Quirks) -> JsonObject:
    """The body's fields for effort and display; none when nothing was set, or for a model that does not reason."""
    effort = settings.effort
    if not model.reasoning:
        return {}
    thinks = effort != "none"
    match quirks.effort:
        case "reasoning":
            return _reasoning(settings)
        case _ if effort is None:
            return {}
        case "reasoning_effort":
            return {"reasoning_effort": "high" if effort == "max" else effort}  # `xhigh` is refused by most models
        case "thinking":
            return {"thinking": {"type": "enabled" if thinks else "disabled"}}
        case "enable_thinking":
            return {"enable_thinking": thinks}
        case "chat_template_kwargs":
            return {"chat_template_kwargs": {"enable_thinking": thinks}}
        case _:
            return {}


def _reasoning(settings: ModelSettings) -> JsonObject:
    """OpenRouter's object, which also hides the reasoning."""
    fields: JsonObject = {}
    if settings.effort == "none":
        fields["enabled"] = False
    elif settings.effort is not None:
        fields["effort"] = "xhigh" if settings.effort == "max" else settings.effort
    if not settings.show_reasoning and settings.effort != "none":
        fields["exclude"] = True
    return {"reasoning": fields} if fields else {}
