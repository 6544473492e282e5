"""Agents and models as JSON, in the form that all faces return."""

from __future__ import annotations

from moot.types.agent import Agent
from moot.types.canonical import Json, JsonObject
from moot.types.model import Model


def agent_json(agent: Agent) -> JsonObject:
    """Return the facts of an agent."""
    return {
        "id": agent.name,
        "name": agent.name,
        "description": agent.description,
        "agent_type": agent.agent_type,
        "model": agent.model,
        "instructions": agent.instructions,
        "rules": agent.rules,
        "tools": None if agent.tools is None else list[Json](agent.tools),
        "role": agent.role,
        "temperature": agent.temperature,
        "max_steps": agent.max_steps,
        "effort": agent.effort,
        "fallback": list[Json](agent.fallback),
    }


def model_json(model: Model) -> JsonObject:
    """Return the facts of a model."""
    price = model.price
    return {
        "id": str(model.id),
        "model": model.id.model,
        "provider": model.id.provider,
        "wire_name": model.wire_name,
        "context": model.context,
        "max_output": model.max_output,
        "modalities": list[Json](model.modalities),
        "tools": model.tools,
        "reasoning": model.reasoning,
        "price": {"input": price.input, "output": price.output} if price else None,
        "note": model.note,
    }
