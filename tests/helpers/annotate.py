"""A server of `greenlabel annotate` inside the tests: a small source, a session that computes nothing, real HTTP."""

import json
import socket
import struct
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace

import httpx
import numpy as np

from greenlabel.annotate.app.server import Address, Keys, listen, names_of, server_of
from greenlabel.annotate.app.service import Service
from greenlabel.errors import ParameterError

PNG = b"\x89PNG\r\n\x1a\n and so on"


class SmallSource:
    n, notes, out = 50, ["a note of the table"], "table-labelled.csv"

    def __init__(self):
        self.saved, self.delay, self.is_text = [], 0.0, False

    def picture(self, row):
        return ("image/png", PNG) if row % 2 == 0 else None

    def words(self, row):
        return f"row {row} begins" if self.is_text else None

    def search(self, words, limit):
        return list(range(7))[:limit] if words == "seven" else []

    def save(self, labels, ignored, report, model):
        time.sleep(self.delay)
        self.saved.append((labels, ignored, report, model))
        return {"files": ["table-labelled.csv"], "sentence": "Wrote it."}

    def finish_writing(self, seconds):
        return True


class SmallSession:
    """Counts and keeps what it is asked; an error can be put into its way."""

    def __init__(self, n=50):
        self.n, self.generation, self.map, self.rested, self.is_closed = n, 0, 0, 0, False
        self.identity = "of this table"
        self.actions, self.threads, self.error = [], set(), None
        self.may_prepare, self.may_settle, self.may_act = threading.Event(), threading.Event(), threading.Event()
        for gate in (self.may_prepare, self.may_settle, self.may_act):
            gate.set()

    def prepare(self, announce):
        announce("graph")
        assert self.may_prepare.wait(30)
        if self.error:
            raise self.error
        self.map = 1

    def settle_map(self):
        assert self.may_settle.wait(30)
        self.map = 2

    def state(self):
        classes = [{"id": 3, "name": "<b>three</b>", "key": "1", "given": 0, "predicted": 4}]
        return {"generation": self.generation, "map": self.map, "n": self.n, "classes": classes, "notes": ["its own"]}

    def frame(self):
        classes = np.full(self.n, 255, np.uint8)
        return SimpleNamespace(
            generation=self.generation, classes=classes, confidence=np.arange(self.n, dtype=np.uint8)
        )

    def positions(self):
        return self.map, np.column_stack([np.arange(self.n), -np.arange(self.n)]).astype(np.float32)

    def act(self, action):
        self.threads.add(threading.current_thread().name)
        assert self.may_act.wait(30)
        if self.error:
            raise self.error
        if action.get("do") != "label":
            raise ParameterError("the action is unknown; send label.")
        self.actions.append(action)
        self.generation += 1

    def card(self, row, hide=False):
        return {"row": row, "hidden": hide, "fields": [["name", "<script>alert(1)</script>"]]}

    def queue(self, n):
        return [{"row": row} for row in range(n)]

    def suspects(self):
        return []

    def of_class(self, number, n):
        return list(range(4))[:n]

    def selection(self, rows, class_id=None):
        return {"size": len(rows), "class": class_id}

    def given_now(self):
        return {1: "three"}, {2}

    def rest(self):
        self.rested += 1
        return False

    def close(self):
        self.is_closed = True


@dataclass
class Served:
    service: Service
    address: Address
    keys: Keys
    printed: list
    server: object

    @property
    def url(self):
        return f"http://{self.address.hosts[0]}"

    @property
    def session(self):
        return self.service.session

    def stranger(self, **kwargs):
        """A client without the cookie."""
        return httpx.Client(base_url=self.url, timeout=20, verify=False, **kwargs)  # certificates take 0.1 s

    @contextmanager
    def client(self, **kwargs):
        """A client that has opened the printed address."""
        with self.stranger(**kwargs) as client:
            self.keys.renew()
            assert client.get("/", params={"token": self.keys.token}).status_code == 200
            yield client

    def post(self, client, path, body, **headers):
        return client.post(path, content=body, headers={**self.post_headers(), **headers})

    def post_headers(self):
        return {"Origin": self.url, "X-Greenlabel": "1", "Content-Type": "application/json"}

    def raw(self, request, wait=5.0):
        """All that comes back for bytes that no client would send."""
        with socket.create_connection(("127.0.0.1", self.address.port), timeout=wait) as connection:
            connection.sendall(request)
            return received(connection)


def received(connection):
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except (TimeoutError, ConnectionResetError):
        pass
    return b"".join(parts)


@contextmanager
def serving(session=None, source=None, host="127.0.0.1", quiet=30.0):
    """A server on a free port, in a thread; it is gone at the end."""
    service = Service(session or SmallSession(), source or SmallSource(), quiet)
    listening = listen(host, 0)
    address = Address(names_of(host), listening.getsockname()[1])
    printed = []
    keys = Keys(address.port, printed.append)
    server = server_of(service, address, keys)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield Served(service, address, keys, printed, server)
    finally:
        service.events.close()
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


def until(holds, seconds=20.0):
    """Wait for something to come true."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.01)


def read_frame(content, n):
    """State, classes and confidence of the bytes of a frame."""
    (length,) = struct.unpack("<I", content[:4])
    assert (4 + length) % 4 == 0
    arrays = np.frombuffer(content[4 + length :], np.uint8)
    assert len(arrays) == 2 * n
    return json.loads(content[4 : 4 + length]), arrays[:n], arrays[n:]
