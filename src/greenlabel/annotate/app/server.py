"""The server on this machine: one printed line, then requests until Ctrl-C.

The socket listens before anything is computed, so the address works at once. Ctrl-C ends the streams of open pages, and
with them the server; what a page was told is on disk by then.
"""

import errno
import os
import socket
import sys
import threading
import webbrowser
from asyncio import TimerHandle
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

import psutil

from greenlabel._common.optional import requires
from greenlabel._common.process import ending_at_once
from greenlabel.annotate.app.routes import application
from greenlabel.annotate.app.security import Guard, Keys
from greenlabel.annotate.app.service import Service
from greenlabel.errors import ParameterError

with requires("annotate"):
    import h11
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

PORT = 8321  # the same each time, so that a page that is open finds a server that was started again
LOOPBACK = "127.0.0.1"
MAX_CONNECTIONS = 100
HEAD_SECONDS = 10.0  # in which a connection must have said what it wants
KEEP_SECONDS = 75  # a connection waits for the next key press; if it closed just then, that would have to be sent again
FAREWELL = 1.5  # seconds for which a server that cannot go on tells pages why


# Where it listens


def check_host(host: str, allow_network: bool) -> str:
    """An address of this machine to listen on; one that others can reach needs a second word."""
    host = LOOPBACK if host == "localhost" else host.strip("[]")
    try:
        address = ip_address(host)
    except ValueError:
        raise ParameterError(f"--host {host} is no address; give one like 127.0.0.1, or 0.0.0.0 for all.") from None
    if not address.is_loopback and not allow_network:
        raise ParameterError(
            f"--host {host} can be reached from the network, without encryption: whoever sees the address sees and "
            "changes the labels. Give --allow-network too if that is meant, or leave out --host."
        )
    return host


def is_open(host: str) -> bool:
    """Whether others can reach an address."""
    return not ip_address(host).is_loopback


def listen(host: str, port: int | None) -> socket.socket:
    """A socket that listens; without a port the usual one, or a free one where that is taken."""
    if port is None:
        with suppress(PortTaken):
            return listen(host, PORT)
        return listen(host, 0)
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        if os.name == "posix":  # elsewhere this would let two servers share a port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(MAX_CONNECTIONS)
    except OSError as error:
        listening.close()
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            why = "is taken" if error.errno == errno.EADDRINUSE else "may not be used"
            raise PortTaken(f"Port {port} {why}; give another --port, or leave it out for a free one.") from None
        raise ParameterError(f"This machine cannot listen on {host} ({error.strerror}); give another --host.") from None
    return listening


class PortTaken(ParameterError):
    """A port that another program has."""


def names_of(host: str) -> list[str]:
    """The names by which a browser may call a server that listens on an address; the first one is printed."""
    address = ip_address(host)
    if address.is_loopback:
        return [host, "localhost"]
    if not address.is_unspecified:
        return [host]
    kinds = (socket.AF_INET,) if address.version == 4 else (socket.AF_INET, socket.AF_INET6)
    known = [
        card.address.split("%")[0] for cards in psutil.net_if_addrs().values() for card in cards if card.family in kinds
    ]
    outside = [name for name in known if not ip_address(name).is_loopback and not ip_address(name).is_link_local]
    inside = [name for name in known if ip_address(name).is_loopback]
    return [*outside, *inside, "localhost", socket.gethostname()]


def with_port(name: str, port: int) -> str:
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


# The server


class Connection(H11Protocol):
    """A connection that must say what it wants within some seconds: slow ones do not fill the room."""

    _silence: TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._expect()
        elif self._silence is not None:
            self._silence.cancel()
            self._silence = None

    def _expect(self) -> None:
        """From the first byte of a request on, not from each."""
        if self._silence is None:
            self._silence = self.loop.call_later(HEAD_SECONDS, self.close_if_silent)

    def close_if_silent(self) -> None:
        self._silence = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()


class Server(uvicorn.Server):
    """A server that tells its pages when it ends."""

    def __init__(self, config: uvicorn.Config, service: Service):
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: Any) -> None:
        super().handle_exit(sig, frame)
        self._service.events.close()

    def give_up(self) -> None:
        """End by itself, after pages were told why; called from another thread."""
        threading.Timer(FAREWELL, self._end).start()

    def _end(self) -> None:
        self._service.events.close()
        self.should_exit = True


@dataclass(frozen=True)
class Address:
    """Where the page is."""

    names: list[str]
    port: int

    @property
    def hosts(self) -> list[str]:
        return [with_port(name, self.port) for name in self.names]

    def url(self, token: str) -> str:
        return f"http://{self.hosts[0]}/?token={token}"


def run(service: Service, listening: socket.socket, host: str, open_browser: bool) -> None:
    """Print the address and serve until Ctrl-C, or until the session cannot go on: then its error is raised."""
    address = Address(names_of(host), listening.getsockname()[1])
    keys = Keys(address.port, lambda token: print_if_read(address.url(token)))
    server = server_of(service, address, keys)
    # All is on disk. A solve that is under way cannot be stopped, and libraries would take a second to end. While the
    # server runs, it first ends the streams of open pages; asyncio would not be silent if it was stopped before.
    with ending_at_once():
        print(address.url(keys.token), flush=True)
        if open_browser:
            show(address.url(keys.token))
        server.run(sockets=[listening])
    if service.failure is not None:
        raise service.failure


def print_if_read(url: str) -> None:
    """Print another address, unless nobody reads the output any more."""
    with suppress(OSError):
        print(url, flush=True)


def server_of(service: Service, address: Address, keys: Keys) -> Server:
    servers: list[Server] = []
    routes = application(service, lambda: servers[0].give_up())
    config = uvicorn.Config(
        Guard(routes, address.hosts, keys),
        http=Connection,
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,  # no line of any log can hold the token
        log_level="critical",
        access_log=False,
        proxy_headers=False,  # nobody stands before it
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_SECONDS,
        timeout_graceful_shutdown=1,
    )
    servers.append(Server(config, service))
    return servers[0]


def show(url: str, opened: Callable[[str], Any] = webbrowser.open) -> None:
    """Open a browser, where there is a screen; one that runs in the terminal would take it over."""
    has_screen = sys.platform in ("win32", "darwin") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    if has_screen:
        threading.Thread(target=quietly, args=(opened, url), daemon=True).start()


def quietly(opened: Callable[[str], Any], url: str) -> None:
    with suppress(Exception):
        opened(url)
