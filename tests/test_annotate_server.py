"""The server of `greenlabel annotate` without a browser, around a session that computes nothing."""

import json
import socket
import threading
import time

import numpy as np
import pytest

pytest.importorskip("starlette")

from greenlabel.annotate.app import routes, server
from greenlabel.annotate.app.events import MAX_STREAMS
from greenlabel.annotate.app.protocol import as_json, frame_bytes
from greenlabel.annotate.app.server import PortTaken, listen, show
from greenlabel.annotate.app.worker import IDLE, URGENT, Worker
from greenlabel.errors import LabelError, ParameterError
from helpers.annotate import SmallSession, SmallSource, read_frame, serving, until

N = SmallSource.n


def label(number):
    return json.dumps({"id": str(number), "do": "label", "rows": [number], "class": 3})


def is_ready(served):
    return served.service.status()["stage"]["name"] == "ready"


@pytest.fixture(scope="module")
def served():
    with serving() as served:
        until(lambda: is_ready(served))
        yield served


@pytest.fixture(scope="module")
def client(served):
    with served.client() as client:
        yield client


# What is answered


def test_the_state_is_that_of_the_session_with_what_the_server_knows(client):
    state = client.get("/api/state").json()
    assert state["stage"] == {"name": "ready", "sentence": "Ready", "done": None}
    assert state["notes"] == ["a note of the table", "its own"]
    assert state["out"] == "table-labelled.csv"
    assert (state["saving"], state["saved"]) == (False, None)
    assert state["map"] == 2


def test_a_frame_is_the_state_and_two_bytes_for_each_row(client):
    reply = client.get("/api/frame")
    state, classes, confidence = read_frame(reply.content, N)
    assert reply.headers["x-generation"] == str(state["generation"])
    assert (classes == 255).all()
    assert (confidence == np.arange(N)).all()


@pytest.mark.parametrize("name", ["", "a", "ab", "abc", "ü", "日本"])
def test_arrays_of_a_frame_begin_at_a_multiple_of_four(name):
    content = frame_bytes({"name": name}, np.zeros(3), np.ones(3))
    state, classes, confidence = read_frame(content, 3)
    assert (state, classes.tolist(), confidence.tolist()) == ({"name": name}, [0, 0, 0], [1, 1, 1])


def test_numpy_values_are_json_and_nan_is_an_error():
    assert json.loads(as_json({"a": np.float32(0.5), "b": np.arange(2), "c": np.int64(3)})) == {
        "a": 0.5,
        "b": [0, 1],
        "c": 3,
    }
    with pytest.raises(ValueError, match="JSON"):
        as_json({"a": float("nan")})


def test_positions_are_little_endian_pairs_with_the_version_of_the_map(client):
    reply = client.get("/api/positions")
    assert reply.headers["x-map-version"] == "2"
    positions = np.frombuffer(reply.content, "<f4").reshape(N, 2)
    assert (positions == np.column_stack([np.arange(N), -np.arange(N)])).all()


def test_rows_lists_and_pictures_are_answered(client):
    assert client.get("/api/row/5").json()["hidden"] is False
    assert client.get("/api/row/5?hide=1").json()["hidden"] is True
    assert len(client.get("/api/next").json()["queue"]) == 10
    assert len(client.get("/api/next?n=3").json()["queue"]) == 3
    assert client.get("/api/suspects").json() == {"suspects": []}
    assert client.get("/api/class/3?n=2").json() == {"rows": [0, 1], "total": 4}
    assert client.get("/api/search?q=seven&n=2").json() == {"rows": [0, 1], "total": 7}
    assert client.get("/api/search").json() == {"rows": [], "total": 0}
    assert client.get("/api/picture/2").content.startswith(b"\x89PNG")
    assert client.get("/api/picture/1").status_code == 404


@pytest.mark.parametrize("path", ["next?n=2", "class/3?n=2", "search?q=seven&n=2"])
def test_lists_of_texts_tell_how_they_begin(path):
    source = SmallSource()
    source.is_text = True
    with serving(source=source) as served, served.client() as client:
        until(lambda: client.get("/api/next").status_code == 200)
        assert client.get(f"/api/{path}").json()["words"] == {"0": "row 0 begins", "1": "row 1 begins"}
        assert len(client.get("/api/next?n=10000").json()["words"]) == 100


def test_every_start_has_pictures_of_its_own(served, client):
    with serving() as other, other.client() as second:
        runs = {one.get("/api/state").json()["run"] for one in (client, second)}
    assert len(runs) == 2
    assert "max-age" in client.get("/api/picture/2?run=x").headers["cache-control"]


@pytest.mark.parametrize(
    "path", ["/api/next?n=x", "/api/next?n=-1", "/api/class/x", "/api/class/-1", "/api/search?n=1.5"]
)
def test_numbers_that_are_none_are_refused(client, path):
    assert client.get(path).status_code == 404


def test_long_searches_are_refused_and_long_lists_are_cut(client):
    assert client.get("/api/search", params={"q": "a" * 201}).status_code == 400
    assert len(client.get("/api/next?n=999999").json()["queue"]) == 10_000


def test_files_have_types_that_do_not_depend_on_the_system(served, client, tmp_path):
    assert client.get("/static/index.html").headers["content-type"] == "text/html; charset=utf-8"
    for name in ("a.js", "b.css", "c.svg", "d.py", "e.map"):
        (tmp_path / name).write_text("content")
    found = routes.Routes(served.service, tmp_path)
    types = {name: found.file(name).headers["content-type"] for name in ("a.js", "b.css", "c.svg")}
    assert types == {
        "a.js": "text/javascript; charset=utf-8",
        "b.css": "text/css; charset=utf-8",
        "c.svg": "image/svg+xml",
    }
    for name in ("d.py", "e.map", "../a.js", "nothing.js"):
        with pytest.raises(routes.Refusal):
            found.file(name)


# What is done


def test_an_action_is_done_in_the_worker_and_answered_with_the_frame_after_it(served, client):
    before = served.session.generation
    reply = served.post(client, "/api/action", label(7))
    assert reply.status_code == 200
    state, _, _ = read_frame(reply.content, N)
    assert state["generation"] == before + 1 == int(reply.headers["x-generation"])
    assert served.session.actions[-1]["rows"] == [7]
    assert served.session.threads == {"annotate-worker"}


def test_what_is_meant_for_another_table_is_not_done(served, client):
    n = len(served.session.actions)
    asked = {"id": "1", "do": "label", "rows": [7]}
    reply = served.post(client, "/api/action", json.dumps(asked | {"table": "another"}))
    assert reply.status_code == 409
    assert "another table" in reply.json()["error"]
    assert len(served.session.actions) == n
    assert served.post(client, "/api/action", json.dumps(asked | {"table": "of this table"})).status_code == 200
    assert served.session.actions[-1] == asked


def test_what_the_session_refuses_is_its_sentence(served, client):
    reply = served.post(client, "/api/action", '{"id": "1", "do": "sing"}')
    assert reply.status_code == 400
    assert reply.json() == {"error": "the action is unknown; send label."}


def test_selections_are_previewed(served, client):
    reply = served.post(client, "/api/selection", '{"rows": [3, 4], "class": 3}')
    assert reply.json() == {"size": 2, "class": 3}
    assert served.post(client, "/api/selection", '{"rows": []}').json() == {"size": 0, "class": None}


def test_labels_can_be_given_while_the_table_is_saved():
    source = SmallSource()
    source.delay = 1.0
    with serving(source=source) as served, served.client() as client, served.client() as other:
        until(lambda: is_ready(served))
        saved = []
        saving = threading.Thread(target=lambda: saved.append(served.post(other, "/api/save", '{"report": true}')))
        saving.start()
        until(lambda: client.get("/api/state").json()["saving"])
        assert served.post(client, "/api/action", label(1)).status_code == 200
        assert served.post(client, "/api/save", "{}").status_code == 409
        assert not saved
        saving.join()
        assert saved[0].json() == {"files": ["table-labelled.csv"], "sentence": "Wrote it."}
        assert source.saved == [({1: "three"}, {2}, True, False)]
        state = client.get("/api/state").json()
        assert (state["saving"], state["saved"]["sentence"]) == (False, "Wrote it.")


class FullDisk(SmallSource):
    def save(self, labels, ignored, report, model):
        raise LabelError("There is no label yet; give some.")


def test_a_save_that_fails_is_a_sentence_and_can_be_tried_again():
    with serving(source=FullDisk()) as served, served.client() as client:
        until(lambda: is_ready(served))
        for _ in range(2):
            reply = served.post(client, "/api/save", "{}")
            assert (reply.status_code, reply.json()["error"]) == (400, "There is no label yet; give some.")
        assert client.get("/api/state").json()["saving"] is False


# Before it is ready


def test_the_page_is_answered_before_the_graph_is_there():
    session = SmallSession()
    session.may_prepare.clear()
    with serving(session) as served, served.client() as client:
        state = client.get("/api/state").json()
        assert state["stage"]["name"] == "graph"
        assert len(client.get("/api/frame").content) > 2 * N
        assert client.get("/api/picture/2").status_code == 200
        for reply in (
            client.get("/api/row/1"),
            client.get("/api/positions"),
            served.post(client, "/api/action", label(1)),
        ):
            assert reply.status_code == 503
            assert "still being made" in reply.json()["error"]
        session.may_settle.clear()
        session.may_prepare.set()
        until(lambda: served.service.status()["stage"]["name"] == "map")
        assert served.post(client, "/api/action", label(1)).status_code == 200  # while the map is being made
        assert client.get("/api/positions").headers["x-map-version"] == "1"
        session.may_settle.set()
        until(lambda: is_ready(served))
        assert client.get("/api/positions").headers["x-map-version"] == "2"


def test_a_graph_that_cannot_be_made_is_told_to_the_page_and_ends_the_server(monkeypatch):
    monkeypatch.setattr(server, "FAREWELL", 0.5)
    session = SmallSession()
    session.error = ParameterError("the rows are all equal; give others.")
    session.may_prepare.clear()
    with serving(session) as served, served.client() as client:
        with client.stream("GET", "/api/events") as stream:
            session.may_prepare.set()
            stages = [json.loads(line[5:])["stage"] for line in stream.iter_lines() if line.startswith("data:")]
        assert stages[-1] == {"name": "failed", "sentence": "the rows are all equal; give others.", "done": None}
        until(lambda: not served.server.server_state.connections)
        assert served.service.failure is session.error


def test_a_map_that_cannot_be_made_leaves_the_first_one(monkeypatch):
    session = SmallSession()
    session.settle_map = lambda: 1 / 0
    with serving(session) as served, served.client() as client:
        until(lambda: is_ready(served))
        assert "the map stays" in client.get("/api/state").json()["stage"]["sentence"]
        assert client.get("/api/positions").headers["x-map-version"] == "1"


# Events


def events(stream, n):
    """The first n events of a stream."""
    found = []
    for line in stream.iter_lines():
        if line.startswith("data:"):
            found.append(json.loads(line[5:]))
        if len(found) == n:
            return found
    return found


def test_all_pages_hear_of_a_label_and_none_is_told_twice(served, client):
    with (
        served.client() as one,
        served.client() as two,
        one.stream("GET", "/api/events") as first,
        two.stream("GET", "/api/events") as second,
    ):
        assert first.headers["content-type"].startswith("text/event-stream")
        lines = first.iter_lines(), second.iter_lines()
        before = [json.loads(next(each)[5:]) for each in lines]
        assert [next(each) for each in lines] == ["", ""]
        served.post(client, "/api/action", label(9))
        client.get("/api/state")  # looking changes nothing
        after = [json.loads(next(each)[5:]) for each in lines]
        assert before[0] == before[1] == {**after[0], "generation": after[0]["generation"] - 1}
        assert after[0] == after[1]
        assert after[0]["stage"]["name"] == "ready"


def test_a_stream_says_now_and_then_that_it_is_alive():
    with serving() as served, served.client() as client:
        until(lambda: is_ready(served))
        served.service.events.every = 0.1
        with client.stream("GET", "/api/events") as stream:
            assert len(events(stream, 4)) == 4


def test_a_stream_whose_page_is_gone_is_forgotten(served):
    with served.client() as client, client.stream("GET", "/api/events") as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("data:")
        assert served.service.events.n_streams == 1
    until(lambda: served.service.events.n_streams == 0)


def test_the_number_of_streams_is_bounded(served, client, monkeypatch):
    monkeypatch.setattr(type(served.service.events), "n_streams", MAX_STREAMS)
    assert client.get("/api/events").status_code == 503


def test_an_end_with_open_streams_is_quick():
    """Without an answer to its end a server would wait for its streams until the time for that is over."""
    session = SmallSession()
    with serving(session) as served, served.client() as client:
        until(lambda: is_ready(served))
        with client.stream("GET", "/api/events") as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("data:")
            served.server.handle_exit(2, None)
            assert list(lines) == [""]  # it ends
            until(lambda: session.is_closed)


# Resting


def test_the_session_rests_when_hands_do():
    session = SmallSession()
    with serving(session, quiet=0.2) as served, served.client() as client:
        until(lambda: is_ready(served))
        served.post(client, "/api/action", label(1))
        rested = session.rested
        until(lambda: session.rested > rested)


def test_the_session_does_not_rest_while_labels_come():
    with serving(quiet=30) as served, served.client() as client:
        until(lambda: is_ready(served))
        served.post(client, "/api/action", label(1))
        time.sleep(0.5)
        assert served.session.rested == 0


def test_a_rest_that_fails_is_told_to_the_terminal_and_labels_can_be_given_on(capfd):
    class Broken(SmallSession):
        def rest(self):
            self.rested += 1
            raise RuntimeError("the blend is broken")

    with serving(Broken(), quiet=0.1) as served, served.client() as client:
        until(lambda: is_ready(served) and served.session.rested)
        assert served.post(client, "/api/action", label(1)).status_code == 200
    assert "the blend is broken" in capfd.readouterr().err


def test_a_full_disk_while_hands_rest_is_one_line(capfd):
    class Full(SmallSession):
        def rest(self):
            self.rested += 1
            raise OSError(28, "No space left on device", "/tmp/somewhere")

    with serving(Full(), quiet=0.1) as served:
        until(lambda: is_ready(served) and served.session.rested)
    assert set(capfd.readouterr().err.splitlines()) == {
        "The blend cannot be fitted (No space left on device), so the live model stays."
    }


def test_pages_hear_when_resting_changed_what_is_shown():
    class Restless(SmallSession):
        def rest(self):
            self.generation += 1
            return True

    with serving(Restless(), quiet=0.1) as served, served.client() as client:
        until(lambda: is_ready(served))
        with client.stream("GET", "/api/events") as stream:
            one, two = events(stream, 2)
            assert two["generation"] > one["generation"]


# The worker


def test_a_key_press_goes_before_what_waits():
    worker, gate, done = Worker(), threading.Event(), []
    worker.submit(gate.wait)
    futures = [worker.submit(lambda: done.append("rest"), IDLE), worker.submit(lambda: done.append("look"))]
    futures += [worker.submit(lambda: done.append("key"), URGENT)]
    gate.set()
    for future in futures:
        future.result(10)
    assert done == ["key", "look", "rest"]
    assert worker.close(lambda: done.append("last"), 10)
    assert done[-1] == "last"


def test_an_error_is_that_of_its_work_alone():
    worker = Worker()
    with pytest.raises(ZeroDivisionError):
        worker.submit(lambda: 1 / 0).result(10)
    assert worker.submit(lambda: 5).result(10) == 5
    worker.close(lambda: None, 10)


def test_work_that_cannot_be_stopped_is_not_waited_for():
    worker, begun, gate = Worker(), threading.Event(), threading.Event()
    worker.submit(lambda: begun.set() or gate.wait())
    assert begun.wait(10)
    assert worker.close(lambda: None, 0.1) is False
    assert worker.is_busy
    gate.set()
    until(lambda: not worker.is_busy)


# Ports and browsers


def test_a_port_that_is_taken_is_a_sentence():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortTaken, match=f"Port {port} is taken; give another --port"):
            listen("127.0.0.1", port)


def test_without_a_port_a_free_one_is_found_where_the_usual_one_is_taken(monkeypatch):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        monkeypatch.setattr(server, "PORT", other.getsockname()[1])
        with listen("127.0.0.1", None) as found:
            assert found.getsockname()[1] != server.PORT


def test_the_usual_port_is_used_where_it_is_free(monkeypatch):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
    monkeypatch.setattr(server, "PORT", port)
    with listen("127.0.0.1", None) as found:
        assert found.getsockname() == ("127.0.0.1", port)


def test_the_other_loopback_address_is_answered_under_its_name():
    try:
        listen("::1", 0).close()
    except ParameterError:
        pytest.skip("this machine has no IPv6")
    with serving(host="::1") as served:
        assert served.address.url("t") == f"http://[::1]:{served.address.port}/?token=t"
        with served.client() as client:
            assert client.get("/api/state").status_code == 200
            assert client.get("/api/state", headers={"Host": f"127.0.0.1:{served.address.port}"}).status_code == 421


def test_an_address_of_another_machine_is_a_sentence():
    with pytest.raises(ParameterError, match="cannot listen on 192\\.0\\.2\\.1"):
        listen("192.0.2.1", 0)


def test_a_browser_is_opened_only_where_there_is_a_screen(monkeypatch):
    opened = []
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(server.sys, "platform", "linux")
    show("http://a", opened.append)
    monkeypatch.setenv("DISPLAY", ":0")
    show("http://b", opened.append)
    until(lambda: opened)
    assert opened == ["http://b"]


def test_a_browser_that_cannot_be_opened_is_no_error(monkeypatch):
    monkeypatch.setenv("DISPLAY", ":0")
    failed = threading.Event()

    def broken(url):
        failed.set()
        raise OSError("no browser")

    show("http://a", broken)
    assert failed.wait(10)
