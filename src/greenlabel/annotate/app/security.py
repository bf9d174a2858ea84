"""Who may come in: a wrapper around all routes.

    Host      one of a fixed list, for everything: another name that was made to lead here (DNS rebinding) is refused
    token     a part of the printed address; works once, and is exchanged for the cookie
    cookie    HttpOnly, SameSite=Strict, its name carries the port; needed for everything else
    POST      an Origin of the list, a header of ours and JSON: nothing that a form of another page can send

No header allows another origin anything, and every reply carries a policy under which the page runs its own scripts
alone.
"""

import hmac
import json
import secrets
from collections.abc import Callable, Iterable
from html import escape

from greenlabel._common.optional import requires
from greenlabel.annotate.app.protocol import Refusal

with requires("annotate"):
    from starlette.datastructures import Headers, MutableHeaders, QueryParams
    from starlette.requests import cookie_parser
    from starlette.responses import HTMLResponse, Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
OUR_HEADER = "x-greenlabel"
METHODS = ("GET", "HEAD", "POST")

USED = (
    "This address was used already, or is an old one. The terminal in which greenlabel runs shows a new one: open that."
)
NO_COOKIE = "This browser has no permission yet. Open the address that the terminal shows, with its token."


class Keys:
    """The token of the printed address, and the secret of the cookie that it is exchanged for."""

    def __init__(self, port: int, announce: Callable[[str], None]):
        """``announce`` is called with a new token when one is asked for and the one before was used."""
        self.cookie = f"greenlabel-{port}"
        self.token = secrets.token_urlsafe(24)
        self._secret = secrets.token_urlsafe(32)
        self._is_used = False
        self._announce = announce

    def exchange(self, token: str) -> str | None:
        """The value of the cookie for a token that was not used; None for any other."""
        if self._is_used or not same(token, self.token):
            return None
        self._is_used = True
        return self._secret

    def renew(self) -> None:
        """Another browser stands at the door: a new token, unless the one before still works."""
        if self._is_used:
            self.token, self._is_used = secrets.token_urlsafe(24), False
            self._announce(self.token)

    def admits(self, cookies: Iterable[str]) -> bool:
        """Whether headers of cookies hold the right one."""
        return any(same(cookie_parser(header).get(self.cookie, ""), self._secret) for header in cookies)


def same(one: str, other: str) -> bool:
    """Whether two secrets are equal, in a time that does not tell where they differ."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


class Guard:
    """An ASGI application that lets those in who may, and gives every reply the headers of HEADERS."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], keys: Keys):
        self._app, self._keys = app, keys
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(f"http://{host}" for host in self._hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no WebSockets
            return
        send = with_headers(send)
        try:
            reply = self._check(scope)
        except Refusal as refusal:
            reply = sentence(scope, refusal)
        await (reply or self._app)(scope, receive, send)

    def _check(self, scope: Scope) -> Response | None:
        """A refusal is raised; a reply is one to a token; None lets the request through."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            raise Refusal(421, "This server answers to the address that the terminal shows, and to no other name.")
        if scope["method"] not in METHODS:
            raise Refusal(405, f"{scope['method']} does nothing here; use GET or POST.", {"Allow": ", ".join(METHODS)})
        if scope["path"] == "/":
            token = token_of(scope)
            if token is not None and scope["method"] == "GET":
                return self._admit(token, headers)
        elif headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise Refusal(403, "Another page asked for this; the page of greenlabel alone may.")
        if not self._keys.admits(headers.getlist("cookie")):
            if scope["path"] == "/":
                self._keys.renew()
            raise Refusal(401, NO_COOKIE)
        if scope["method"] == "POST":
            self._check_post(headers)
        return None

    def _admit(self, token: str, headers: Headers) -> Response:
        """The cookie for a token, on a page that goes on to the real one, without the token.

        Not a redirect: one that began on another site would leave out the strict cookie that it has just been given.
        """
        value = self._keys.exchange(token)
        if value is None:
            if self._keys.admits(headers.getlist("cookie")):  # the same address again, in a browser that is in
                return onward()
            self._keys.renew()
            raise Refusal(401, USED)
        reply = onward()
        reply.set_cookie(self._keys.cookie, value, httponly=True, samesite="strict", path="/")
        return reply

    def _check_post(self, headers: Headers) -> None:
        if headers.get("origin", "").lower() not in self._origins:
            raise Refusal(403, "POST needs the header Origin with this server's own address.")
        if headers.get(OUR_HEADER) != "1":
            raise Refusal(403, "POST needs the header X-Greenlabel: 1.")
        if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            raise Refusal(415, "POST needs the header Content-Type: application/json.")


def token_of(scope: Scope) -> str | None:
    return QueryParams(scope["query_string"]).get("token")


def onward() -> HTMLResponse:
    return HTMLResponse(page('Opening. If nothing happens, go on to <a href="/">the page</a>.', refresh=True))


def sentence(scope: Scope, refusal: Refusal) -> Response:
    """A refusal: for people who opened the address a page, for scripts JSON."""
    if scope["path"] == "/":
        return HTMLResponse(page(escape(refusal.sentence)), refusal.status, refusal.headers)
    text = json.dumps({"error": refusal.sentence})
    return Response(text, refusal.status, refusal.headers, media_type="application/json")


def page(text: str, refresh: bool = False) -> str:
    """A small page; its policy allows neither styles nor scripts of its own."""
    onward = '<meta http-equiv="refresh" content="0;url=/">' if refresh else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        f'<meta name="viewport" content="width=device-width"><link rel="icon" href="/favicon.svg">{onward}'
        "<title>greenlabel annotate</title></head>"
        f"<body><h1>greenlabel annotate</h1><p>{text}</p></body></html>"
    )


def with_headers(send: Send) -> Send:
    """Every reply carries HEADERS, unless it says otherwise itself."""

    async def send_more(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_more
