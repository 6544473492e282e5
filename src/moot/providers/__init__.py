"""Whom we call: one file for each endpoint of a model, with its URL, its way of proving who asks, and its quirks.

A provider takes a request that a dialect has written and gives back the vendor's own bytes, frame by frame; what they mean is the
translator's business (`convert/`). `Providers` is the way in: it knows which ones are configured, finds a model by name and says
what it costs.

| file | what |
|---|---|
| `pool.py` | `Providers`: settings to providers, names to models, first run's detection |
| `catalogue.py` | what is known of a model: context, modalities, price, each provider's own name for it |
| `_facts.py` | the plain facts that a provider's file states |
| `_http.py` | the one HTTP client: a POST, its frames, its errors |
| `_sse.py` | socket reads to raw frames |
| `_refusals.py` | statuses, error bodies and broken connections to `ProviderError` |
| `_prices.py` | the price snapshot of `genai-prices`, loaded when first wanted |
| `openai_compatible.py` | what all that speak openai-chat have in common |
| `anthropic.py`, `openai.py`, `deepseek.py`, … | one endpoint each |
| `custom.py` | any endpoint of the configuration |
| `demo.py` | no model at all: scripted words, to try moot without one |
| `local.py` | the embedded model |
"""

__all__: list[str] = []
