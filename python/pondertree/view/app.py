"""The ASGI application: the page, its files, and a WebSocket per client. All clients share one session."""

from __future__ import annotations

import hmac
import secrets
from pathlib import Path
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from pondertree.view.client import Client
from pondertree.view.hub import Hub
from pondertree.view.setup import Setup

#: The built page, see `make view`.
STATIC = Path(__file__).parent / "static"
#: Names of this machine: a page of another name, which an attacker let resolve to this machine, is refused.
LOCAL_NAMES = {"localhost", "127.0.0.1", "::1"}
#: Most clients at once.
MAX_CLIENTS = 64
#: Codes of closed WebSockets (RFC 6455).
POLICY, TRY_LATER = 1008, 1013

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
NOT_BUILT = """The page is not built. In a clone of Pondertree, this builds it (it needs Node.js and npm):

    make view
"""


class LocalOnly:
    """Middleware that refuses requests for other hosts and from other origins, and adds the security headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = refusal_of(HTTPConnection(scope))
        if refusal and scope["type"] == "websocket":
            await WebSocket(scope, receive, send).close(POLICY, refusal)
        elif refusal:
            await PlainTextResponse(refusal, 403, HEADERS)(scope, receive, send)
        else:

            async def send_with_headers(message: Message) -> None:
                if message["type"] == "http.response.start":
                    message["headers"] += [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                await send(message)

            await self._app(scope, receive, send_with_headers)


def refusal_of(connection: HTTPConnection) -> str:
    """Returns why a request is refused: the host is not this machine, or the page is of another origin; else ""."""
    host = connection.headers.get("host", "")
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        name = None
    if name not in LOCAL_NAMES:
        return "This server answers only to localhost."
    origin = connection.headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return "This server answers only to its own page."
    return ""


def create_app(setup: Setup, token: str, static: Path = STATIC) -> Starlette:
    """Returns the application; `token` must be in the query of the page and of the WebSocket."""
    hub = Hub(setup, secrets.token_hex(8))

    def is_known(connection: HTTPConnection) -> bool:
        given = connection.query_params.get("token", "")
        return hmac.compare_digest(given.encode(), token.encode())

    async def page(request: Request) -> Response:
        if not is_known(request):
            return PlainTextResponse("403: open the address that pondertree view printed, with its token.", 403)
        index = static / "index.html"
        if not index.exists():
            return PlainTextResponse(NOT_BUILT, 503)
        return HTMLResponse(index.read_text(encoding="utf-8"))

    async def tree(request: Request) -> Response:
        if not is_known(request):
            return PlainTextResponse("403: the token is missing or wrong.", 403)
        path = hub.saved.get(request.query_params.get("name", ""))
        if path is None:
            return PlainTextResponse("404: no tree was saved by this name, or others since.", 404)
        return FileResponse(path, filename="search.tree")

    async def socket(websocket: WebSocket) -> None:
        if not is_known(websocket):
            await websocket.close(POLICY, "the token is missing or wrong")
        elif len(hub.clients) >= MAX_CLIENTS:
            await websocket.close(TRY_LATER, "too many clients")
        else:
            # It is one of `hub.clients` before it waits for the handshake.
            await Client(hub, websocket).serve()

    routes = [Route("/", page), Route("/tree", tree), WebSocketRoute("/socket", socket)]
    if static.is_dir():
        routes.append(Mount("/", StaticFiles(directory=static)))
    app = Starlette(routes=routes, lifespan=lambda app: hub.running())
    app.add_middleware(LocalOnly)
    app.state.hub = hub
    return app
