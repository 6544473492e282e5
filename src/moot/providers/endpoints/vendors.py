"""Vendors' endpoints. Most need only facts and quirks, and no code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from moot.convert.vendor import count
from moot.providers.catalogue import rows_of
from moot.providers.http import HttpProvider
from moot.types.model import Model
from moot.types.provider import Facts, Quirks


class Anthropic(HttpProvider):
    """Anthropic. The `base_url` has no version, because the paths include it."""

    facts = Facts(
        "anthropic",
        "https://api.anthropic.com",
        dialect="anthropic",
        key_form=r"sk-ant-.+",
        priority=10,
        main="claude-sonnet-5-5",
        prices="anthropic",
    )


class DeepSeek(HttpProvider):
    """DeepSeek. Reasoning must be sent back together with a step's tool calls; otherwise the request is rejected."""

    facts = Facts(
        "deepseek",
        "https://api.deepseek.com/v1",
        priority=30,
        main="deepseek-v4-pro",
        prices="deepseek",
        quirks=Quirks(effort="thinking", reasoning_back="reasoning_content"),
    )


class Groq(HttpProvider):
    """Groq, which hosts other vendors' models and therefore has a lower priority than those vendors."""

    facts = Facts(
        "groq",
        "https://api.groq.com/openai/v1",
        key_form=r"gsk_.+",
        priority=50,
        main="openai/gpt-oss-120b",
        prices="groq",
        quirks=Quirks(max_tokens="max_completion_tokens"),
    )


class MiniMax(HttpProvider):
    """MiniMax. The coding plan has its own keys but the usual base URL. The `china` plans require keys from minimaxi.com."""

    facts = Facts(
        "minimax",
        "https://api.minimax.io/v1",
        key_form=r"sk-(api|cp)-.+",
        priority=32,
        plans={
            "coding": "https://api.minimax.io/v1",
            "china": "https://api.minimaxi.com/v1",
            "china-coding": "https://api.minimaxi.com/v1",
        },
        main="MiniMax-M3",
        prices="minimax",
        quirks=Quirks(effort="none", reasoning_back="reasoning_details", extra={"reasoning_split": True}),
    )


class Mistral(HttpProvider):
    """Mistral. It rejects `stream_options` (the usage is always sent) and tool call ids that don't have exactly nine characters."""

    facts = Facts(
        "mistral",
        "https://api.mistral.ai/v1",
        priority=34,
        main="mistral-large-latest",
        prices="mistral",
        telemetry_name="mistral_ai",
        quirks=Quirks(effort="none", stream_usage=False, call_ids="^[A-Za-z0-9]{9}$"),
    )


class Moonshot(HttpProvider):
    """Moonshot. The plan `coding` is Kimi Code, which has its own keys and models (`kimi-for-coding`).

    `china` requires keys from moonshot.cn.
    """

    facts = Facts(
        "moonshot",
        "https://api.moonshot.ai/v1",
        priority=33,
        plans={"coding": "https://api.kimi.com/coding/v1", "china": "https://api.moonshot.cn/v1"},
        plan_models={"coding": ("kimi-for-coding",)},
        main="kimi-k3",
        prices="moonshotai",
        quirks=Quirks(effort="thinking", reasoning_back="reasoning_content"),
    )


class OpenAI(HttpProvider):
    """OpenAI. The quirks are for Chat Completions, selected with `dialect: openai-chat`: reasoning models reject `max_tokens` and the role
    `system`, and all models accept the newer names."""

    facts = Facts(
        "openai",
        "https://api.openai.com/v1",
        dialect="openai-responses",
        key_form=r"sk-(proj|svcacct|admin)-.+|sk-.*T3BlbkFJ.*",
        priority=20,
        main="gpt-5.5",
        prices="openai",
        quirks=Quirks(max_tokens="max_completion_tokens", developer_role=True),
    )


class OpenRouter(HttpProvider):
    """OpenRouter. Reasoning is requested with an object, and sent back with all details, including signatures."""

    facts = Facts(
        "openrouter",
        "https://openrouter.ai/api/v1",
        key_form=r"sk-or-.+",
        priority=60,
        main="anthropic/claude-sonnet-5.5",
        prices="openrouter",
        quirks=Quirks(effort="reasoning", reasoning_back="reasoning_details", extra={"usage": {"include": True}}),
    )


class Vercel(HttpProvider):
    """Vercel AI Gateway. It charges the vendors' prices, as OpenRouter does, so OpenRouter's prices in the snapshot are used."""

    facts = Facts(
        "vercel",
        "https://ai-gateway.vercel.sh/v1",
        key_form=r"vck_.+",
        priority=70,
        main="anthropic/claude-sonnet-5.5",
        prices="openrouter",
        vendors={"x-ai": "xai", "z-ai": "zai", "mistralai": "mistral", "meta-llama": "meta"},
        quirks=Quirks(effort="reasoning", reasoning_back="reasoning_details"),
    )


class XAI(HttpProvider):
    """xAI. The newer models always reason and accept no effort."""

    facts = Facts(
        "xai",
        "https://api.x.ai/v1",
        key_form=r"xai-.+",
        priority=35,
        main="grok-4.7",
        prices="x-ai",
        telemetry_name="x_ai",
        quirks=Quirks(max_tokens="max_completion_tokens"),
    )


class Zhipu(HttpProvider):
    """Zhipu. The plan `coding` uses the base URL of the subscription. The `china` plans require keys from bigmodel.cn."""

    facts = Facts(
        "zhipu",
        "https://api.z.ai/api/paas/v4",
        key_form=r"[0-9a-f]{32}\.[0-9A-Za-z]{16}",
        priority=31,
        plans={
            "coding": "https://api.z.ai/api/coding/paas/v4",
            "china": "https://open.bigmodel.cn/api/paas/v4",
            "china-coding": "https://open.bigmodel.cn/api/coding/paas/v4",
        },
        main="glm-5.3",
        prices="zai",
        lower_case=True,
        quirks=Quirks(effort="thinking", reasoning_back="reasoning_content"),
    )


class Google(HttpProvider):
    """The Gemini API. The `base_url` has no version, because the paths include it.

    The key is sent in a header, because servers log URLs.
    """

    facts = Facts(
        "google",
        "https://generativelanguage.googleapis.com",
        dialect="google",
        key_form=r"AIza[\w-]{35}",
        priority=22,
        main="gemini-3.8-flash",
        prices="google",
        telemetry_name="gcp.gemini",
        sold=r"^(gemini|gemma)-",
    )

    async def models(self) -> Sequence[Model]:
        """Return the models that answer prompts, with their context sizes. Raise ProviderError if the request fails."""
        if self.dialect != self.facts.dialect:
            return await super().models()
        models: list[Model] = []
        for row in rows_of(self.name, await self._get(self.shape.models)):
            name, methods = row.get("name"), row.get("supportedGenerationMethods")
            if isinstance(name, str) and isinstance(methods, list) and "generateContent" in methods:
                model = self.describe(name.removeprefix("models/"))
                context, output = model.context or count(row.get("inputTokenLimit")), model.max_output or count(row.get("outputTokenLimit"))
                models.append(replace(model, context=context, max_output=output))
        return models
