"""What newer converters make of old runs: worked out on the reading thread, stored run by run, beside the log and never in it.

| file | what it holds |
|---|---|
| `working.py` | one run, or the calls beside the runs, translated by the converters that are here |
| `storing.py` | the transaction in which that becomes what readers get |
| `translations.py` | `Translations`: the way through the store, and the way back to the first translation |
"""

from moot.store.translating.translations import StoreTranslations

__all__ = ["StoreTranslations"]
