"""The HTTP server: shows the runtime to programs and to the page; decides nothing.

A request passes the `borders`, then its route, which knows its `Caller` by one of four dependencies of `auth`. Routes take what belongs
to somebody from `caller.store` and from nowhere else. Every error becomes a problem (`problems`).

| file | what it does |
|---|---|
| `app.py` | `create_app`: the borders and every router |
| `state.py` | `Server`: what all requests share |
| `borders.py`, `origins.py` | what every request passes: id, log, counts, headers, hosts and origins, patience |
| `auth.py`, `caller.py`, `credentials.py` | who asks, and what they may do |
| `problems.py` | errors as they are told |
| `paging.py`, `etags.py`, `idempotency.py` | lists by pages; which state a caller has seen; what is done once |
| `finding.py` | things as a path names them |
| `openapi.py` | every operation described; the folder `documentation` shows it to people |
| `pages.py` | the built page and its files |
| `routing.py` | `Router`: routes that read bodies to the letter |
| `sharing.py` | what streams have in common |
| `streams/` | the streams |
| `metrics.py` | what the server counts |
| `configuration.py` | the configuration in force, read again when it changes |
| `importing.py` | imports that were asked for, one after the other |
| `uploading.py` | files that are sent for an import, as long as it takes |
| `following.py` | what agents on the machine write, brought in while they write it |
| `serving.py`, `sockets.py` | runs it all until a signal; the address it listens on |
| `connection.py` | what is read from a caller, with bounds on the head of a request |
| `changing.py` | changes of the configuration that come over the wire |
| `tries.py` | wrong credentials of late, and who is not heard for them |
| `given.py` | the answers that programs may go on from |
| `dialects/` | moot as a model for other programs |
| `routes/` | the operations, one file for each resource |
| `wire/` | what goes over the wire |
"""

__all__: list[str] = []
