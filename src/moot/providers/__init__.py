"""Whom we call: one file for each endpoint of a model, with its URL, its way of proving who asks, and its quirks.

A provider takes a request that a dialect has written and gives back the vendor's own bytes, frame by frame; what they mean is the
translator's business (`convert/`). `Providers` is the way in: it knows which ones are configured, finds a model by name and says
what it costs. The endpoints themselves are listed by the registry `PROVIDERS` alone; `custom.py` is any endpoint of the configuration,
`demo.py` no model at all, `local.py` the embedded one.

| file | what |
|---|---|
| `described.py` | providers as JSON |
| `trying.py` | one small call to a model |
| `pool.py` | `Providers`: settings to providers, names to models, first run's detection |
| `catalogue.py` | what is known of a model: context, modalities, price, each provider's own name for it |
| `_families.py` | what families of models take and do |
| `_prices.py` | the price snapshot of `genai-prices`, loaded when first wanted |
| `http.py` | the one HTTP client: a POST, its frames, its errors |
| `_shapes.py` | paths and authentication of each dialect |
| `_sse.py` | socket reads to raw frames |
| `_lines.py` | the same where each line is a frame |
| `_refusals.py` | statuses and error bodies to `ProviderError` |
| `media.py` | pictures and transcripts |
| `_mask.py` | keeps keys out of errors and frames |
| `_own_machine.py` | what Ollama and LM Studio have in common |
| `_local_machine.py` | whether the embedded model can run here |
| `_local_server.py` | its child process, seen from moot |
| `_local_child.py` | its child process, seen from inside |
| `meaning/` | texts of like meaning near each other: the model of searches by meaning |
| `weights/` | where the weights of models come from that moot runs itself |
"""

__all__: list[str] = []
