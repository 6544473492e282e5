"""The model endpoints that moot calls: one class for each, with its URL, authentication and quirks.

A provider sends a request written by a dialect and returns the vendor's raw bytes, frame by frame. Translators (`convert/`) interpret
them. `Providers` is the entry point: it knows which providers are configured, finds models by name and computes costs. The registry
`PROVIDERS` lists all endpoints. `custom.py` is any endpoint from the configuration, `demo.py` a scripted stand-in without a model, and
`local.py` the embedded model.

| file | contents |
|---|---|
| `described.py` | providers as JSON |
| `trying.py` | a test call to a model |
| `pool.py` | `Providers`: from settings to providers, from names to models; detection of a default model |
| `catalogue.py` | facts about models: context, modalities, price, each provider's name for it |
| `_families.py` | capabilities of model families |
| `_prices.py` | the price snapshot of `genai-prices`, loaded on first use |
| `http.py` | the HTTP client: requests, frames, errors |
| `_shapes.py` | paths and authentication of each dialect |
| `_lines.py` | splitting a response into lines |
| `_refusals.py` | translation of HTTP errors to `ProviderError` |
| `media.py` | image generation and transcription |
| `_mask.py` | removal of keys from errors and frames |
| `_own_machine.py` | base class of model servers on the user's machine |
| `_local_machine.py` | check whether the embedded model can run on this machine |
| `_local_server.py` | its child process, as seen by moot |
| `_local_child.py` | the child process itself |
| `meaning/` | the embedding model for semantic search |
| `weights/` | download of model weights |
"""

__all__: list[str] = []
