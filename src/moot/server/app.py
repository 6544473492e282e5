"""Puts the application together: borders around every route of the table, and the page where no route is."""

from __future__ import annotations

from fastapi import FastAPI

from moot import __version__
from moot.server import problems
from moot.server.borders import Border, Doors, Patience
from moot.server.idempotency import Repeats
from moot.server.pages import Pages
from moot.server.routes import ROUTERS
from moot.server.state import Server


def create_app(server: Server) -> FastAPI:
    """The application of one server; whoever runs it also runs `server.tokens.watch()`."""
    app = routed()
    app.state.server = server
    problems.install(app)
    for middleware in (Repeats, Patience, Doors, Border):  # the last one added is the outermost
        app.add_middleware(middleware, server=server)
    app.router.default = Pages()
    return app


def routed() -> FastAPI:
    """The routes alone: enough to describe them."""
    app = FastAPI(
        title="moot",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    for router in ROUTERS:
        app.include_router(router)
    return app
