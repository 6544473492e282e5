"""Taking away for good, from every place where words lie, with a receipt of what went where.

A purge takes whole conversations, a redaction takes strings out of everything. Both are work that is stored when it begins and done in
steps, each of which can be done again, so that a crash leaves it begun and not half done; the next process goes on with it. The receipt is
stored in the transaction of what it tells. In the end the file itself is cleaned: indexes merged, every page written anew, the log of
writes emptied. One process at a time does any of this.

| file | what it holds |
|---|---|
| `places` | every table: which columns may hold words, and which rows hang on a conversation |
| `needles`, `spelling`, `encoded` | what is looked for in all its spellings: escaped, and in base64 |
| `pages` | shared pages without it, also where elements lie between its letters |
| `patterns` | regular expressions whose cost is bounded |
| `works` | a work and its receipt as they are stored |
| `forgetter` | the steps of both, and what was cut off |
| `purging` | the transaction in which a conversation goes |
| `scanning` | which events hold a string, also where it is split over them |
| `redacting`, `rewriting` | blobs, conversations and the rest without it; what follows from a redacted log |
| `naming`, `sweeping` | who names which blob; removing those that nobody names |
| `said`, `beside` | what was typed in a conversation; drafts, typed lines and logs |
| `reaching` | copies of the store that lie elsewhere: those before an upgrade, backups |
| `retention` | which conversations are over by the rules of the configuration |
"""

from moot.store.forgetting.forgetter import Forgetter

__all__ = ["Forgetter"]
