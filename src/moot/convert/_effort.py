"""Reasoning effort in the forms that endpoints behind the OpenAI wire format expect."""

from __future__ import annotations

from moot.types.canonical import JsonObject
from moot.types.model import Model, ModelSettings
from moot.types.provider import Quirks


def effort_fields(settings: ModelSettings, model: Model, quirks: Quirks) -> JsonObject:
    """Return the body's fields for effort and display; none if nothing was set or the model does not reason."""
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
            return {"reasoning_effort": "high" if effort == "max" else effort}  # most models refuse `xhigh`
        case "thinking":
            return {"thinking": {"type": "enabled" if thinks else "disabled"}}
        case "enable_thinking":
            return {"enable_thinking": thinks}
        case "chat_template_kwargs":
            return {"chat_template_kwargs": {"enable_thinking": thinks}}
        case _:
            return {}


def _reasoning(settings: ModelSettings) -> JsonObject:
    """Return OpenRouter's object, which can also hide the reasoning."""
    fields: JsonObject = {}
    if settings.effort == "none":
        fields["enabled"] = False
    elif settings.effort is not None:
        fields["effort"] = "xhigh" if settings.effort == "max" else settings.effort
    if not settings.show_reasoning and settings.effort != "none":
        fields["exclude"] = True
    return {"reasoning": fields} if fields else {}
