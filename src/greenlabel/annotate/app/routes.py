"""The addresses of the server, and what each answers."""

import sys
import traceback
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from greenlabel._common.optional import requires
from greenlabel.annotate.app.protocol import (
    SMALL_BODY,
    Refusal,
    as_json,
    check_flag,
    check_names,
    check_row,
    check_rows,
    count_in,
    kind_of,
    max_body,
    number_in,
    read_body,
    read_json,
)
from greenlabel.annotate.app.service import Service
from greenlabel.errors import GreenlabelError

with requires("annotate"):
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route

STATIC = Path(__file__).parent.parent / "static"
MEDIA = {  # said by us: some systems believe that .js is plain text
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
PICTURE = {"Content-Security-Policy": "sandbox; default-src 'none'", "Cache-Control": "private, max-age=3600"}
BINARY = "application/octet-stream"
MAX_WORDS = 200  # characters of a search

Endpoint = Callable[[Request], Awaitable[Response]]


def application(service: Service, on_failure: Callable[[], None] = lambda: None) -> Starlette:
    """The routes, without any guard."""
    routes = Routes(service)

    @asynccontextmanager
    async def lifespan(app: Any) -> Any:
        await service.start(on_failure)
        yield
        service.close()

    return Starlette(routes=routes.all(), lifespan=lifespan, exception_handlers={HTTPException: not_here})


async def not_here(request: Request, error: Any) -> Response:
    if error.status_code == 405:
        return reply({"error": f"{request.method} does nothing here."}, 405)
    return reply({"error": "There is nothing here."}, error.status_code)


def reply(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(as_json(value), status, headers, media_type="application/json")


def answering(endpoint: Endpoint) -> Endpoint:
    """Refusals as one sentence; an error of ours is told to the terminal, not to the page."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Refusal as refusal:
            return reply({"error": refusal.sentence}, refusal.status, refusal.headers)
        except GreenlabelError as error:
            return reply({"error": str(error)}, 400)
        except OSError as error:
            reason = error.strerror or "the system refused"
            return reply({"error": f"This could not be done: {reason}."}, 507)
        except Exception:
            traceback.print_exc(file=sys.stderr)
            return reply({"error": "Something went wrong in greenlabel; the terminal says what."}, 500)

    return answer


class Routes:
    """Endpoints around a service."""

    def __init__(self, service: Service, static: Path = STATIC):
        self._service = service
        # A fixed table: no part of a request is ever joined to a path.
        self._files = {path.name: path for path in sorted(static.glob("*")) if path.suffix in MEDIA}

    def all(self) -> list[Route]:
        gets = {
            "/": self.page,
            "/favicon.svg": self.icon,
            "/static/{name}": self.static,
            "/api/state": self.state,
            "/api/frame": self.frame,
            "/api/positions": self.positions,
            "/api/events": self.events,
            "/api/row/{row}": self.row,
            "/api/picture/{row}": self.picture,
            "/api/next": self.next,
            "/api/suspects": self.suspects,
            "/api/class/{id}": self.of_class,
            "/api/search": self.search,
        }
        posts = {"/api/action": self.action, "/api/selection": self.selection, "/api/save": self.save}
        return [
            *(Route(path, answering(endpoint), methods=["GET"]) for path, endpoint in gets.items()),
            *(Route(path, answering(endpoint), methods=["POST"]) for path, endpoint in posts.items()),
        ]

    # The page

    async def page(self, request: Request) -> Response:
        return self.file("index.html")

    async def icon(self, request: Request) -> Response:
        return self.file("favicon.svg")

    async def static(self, request: Request) -> Response:
        return self.file(request.path_params["name"])

    def file(self, name: str) -> Response:
        path = self._files.get(name)
        if path is None:
            raise Refusal(404, "There is no such file.")
        return Response(path.read_bytes(), headers={"Cache-Control": "no-cache"}, media_type=MEDIA[path.suffix])

    # What the session knows

    async def state(self, request: Request) -> Response:
        return reply(self._service.state())

    async def frame(self, request: Request) -> Response:
        return frame_reply(*self._service.frame())

    async def positions(self, request: Request) -> Response:
        version, positions = self._service.positions()
        return Response(positions, headers={"X-Map-Version": str(version)}, media_type=BINARY)

    async def events(self, request: Request) -> Response:
        if self._service.events.is_full:
            raise Refusal(503, "Too many pages are open; close some.")
        return StreamingResponse(self._service.events.stream(), media_type="text/event-stream")

    async def row(self, request: Request) -> Response:
        row = self._row_in(request)
        hide = request.query_params.get("hide") == "1"
        card = await self._service.ask(lambda: self._service.session.card(row, hide))
        return reply(card | self._service.words([one["row"] for one in card.get("why", [])]))

    async def picture(self, request: Request) -> Response:
        row = self._row_in(request)
        found = await self._service.picture(row)
        if found is None:
            raise Refusal(404, f"Row {row} has no picture that can be shown.")
        media, content = found
        return Response(content, headers=PICTURE, media_type=media)

    async def next(self, request: Request) -> Response:
        n = count_in(request, 10)
        asked = await self._service.ask(lambda: self._service.session.queue(n))
        return reply({"queue": asked} | self._service.words([one["row"] for one in asked]))

    async def suspects(self, request: Request) -> Response:
        found = await self._service.ask(self._service.session.suspects)
        return reply({"suspects": found} | self._service.words([one["row"] for one in found]))

    async def of_class(self, request: Request) -> Response:
        number, n = number_in(request.path_params["id"], "The id of a class"), count_in(request, 100)
        rows, total = await self._service.of_class(number, n)
        return reply({"rows": rows, "total": total} | self._service.words(rows))

    async def search(self, request: Request) -> Response:
        words, n = request.query_params.get("q", ""), count_in(request, 100)
        if len(words) > MAX_WORDS:
            raise Refusal(400, f"The words to search for are longer than {MAX_WORDS} characters.")
        rows = await self._service.search(words)
        return reply({"rows": rows[:n], "total": len(rows)} | self._service.words(rows[:n]))

    def _row_in(self, request: Request) -> int:
        return check_row(number_in(request.path_params["row"], "A row"), self._service.n)

    # What people do

    async def action(self, request: Request) -> Response:
        action = await self._body(request, self._checked_action)
        return frame_reply(*await self._service.act(action))

    async def selection(self, request: Request) -> Response:
        rows, number = await self._body(request, self._checked_selection)
        found = await self._service.ask(lambda: self._service.session.selection(rows, number))
        return reply(found | self._service.words(found.get("least_typical", [])))

    async def save(self, request: Request) -> Response:
        report, model = await self._body(request, checked_save)
        return reply(await self._service.save(report, model))

    async def _body(self, request: Request, check: Callable[[dict[str, Any]], Any]) -> Any:
        """What a request says, checked; a long one away from the event loop."""
        body = await read_body(request, max_body(self._service.n))
        if len(body) <= SMALL_BODY:
            return check(read_json(body))
        return await self._service.beside(lambda: check(read_json(body)))

    def _checked_action(self, action: dict[str, Any]) -> dict[str, Any]:
        """Rows and the table that is meant are looked at here; the session looks at everything else."""
        if action.pop("table", None) not in (None, self._service.session.identity):
            raise Refusal(409, "This is meant for another table than the one that is open here; nothing was done.")
        for name in ("rows", "then_label"):
            if name in action:
                check_rows(action[name], self._service.n)
        if "row" in action:
            check_row(action["row"], self._service.n)
        return action

    def _checked_selection(self, asked: dict[str, Any]) -> tuple[list[int], int | None]:
        check_names(asked, {"rows", "class"})
        number = asked.get("class")
        if number is not None and type(number) is not int:
            raise Refusal(400, f"class must be the id of a class or null, got {kind_of(number)}.")
        return check_rows(asked.get("rows"), self._service.n), number


def checked_save(asked: dict[str, Any]) -> tuple[bool, bool]:
    check_names(asked, {"report", "model"})
    return check_flag("report", asked.get("report", False)), check_flag("model", asked.get("model", False))


def frame_reply(generation: int, content: bytes) -> Response:
    return Response(content, headers={"X-Generation": str(generation)}, media_type=BINARY)
