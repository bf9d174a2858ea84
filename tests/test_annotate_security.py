"""Nobody else gets in: every line of defence of `greenlabel annotate` has a test here that fails without it."""

import asyncio
import logging
import socket
import time
from contextlib import suppress

import httpx
import pytest

pytest.importorskip("starlette")

from greenlabel.annotate.app import protocol, security, server
from greenlabel.annotate.app.protocol import max_body
from greenlabel.errors import ParameterError
from helpers.annotate import SmallSource, read_frame, received, serving, until

EVERYTHING = ["/", "/static/index.html", "/favicon.svg", "/api/state", "/api/frame", "/api/positions", "/api/events"]
EVERYTHING += ["/api/row/1", "/api/picture/2", "/api/next", "/api/suspects", "/api/class/3", "/api/search", "/nothing"]
POSTS = ["/api/action", "/api/selection", "/api/save"]
LABEL = '{"id": "1", "do": "label", "rows": [1], "class": 3}'


@pytest.fixture(scope="module")
def served():
    with serving() as served:
        until(lambda: served.service.status()["stage"]["name"] == "ready")
        yield served


@pytest.fixture(scope="module")
def client(served):
    with served.client() as client:
        yield client


# Host


@pytest.mark.parametrize("path", EVERYTHING)
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:{port}"]
)
def test_a_foreign_host_is_refused_for_everything_cookie_or_not(served, client, path, host):
    reply = client.get(path, headers={"Host": host.format(port=served.address.port)})
    assert reply.status_code == 421


def test_a_foreign_host_does_not_use_up_the_token(served):
    served.keys.renew()
    with served.stranger() as stranger:
        assert (
            stranger.get("/", params={"token": served.keys.token}, headers={"Host": "evil.example"}).status_code == 421
        )
        assert stranger.get("/", params={"token": served.keys.token}).status_code == 200


@pytest.mark.parametrize("host", [b"", b"Host: evil.example\r\n", b"Host: 127.0.0.1:%d\r\nHost: evil.example\r\n"])
def test_requests_without_one_right_host_are_refused(served, host):
    line = host % served.address.port if b"%d" in host else host
    version = b"HTTP/1.1" if host else b"HTTP/1.0"  # which needs none
    reply = served.raw(b"GET /api/state " + version + b"\r\n" + line + b"Connection: close\r\n\r\n")
    assert reply.split()[1] in (b"400", b"421")


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST"])
def test_the_names_of_this_machine_are_answered(served, client, name):
    reply = client.get("/api/state", headers={"Host": f"{name}:{served.address.port}"})
    assert reply.status_code == 200


# Token and cookie


@pytest.mark.parametrize("path", EVERYTHING)
def test_nothing_is_answered_without_the_cookie(served, path):
    with served.stranger() as stranger:
        reply = stranger.get(path)
    assert reply.status_code == 401
    assert "address that the terminal shows" in reply.text
    assert "set-cookie" not in reply.headers


@pytest.mark.parametrize("path", POSTS)
def test_nothing_is_done_without_the_cookie(served, path):
    before = len(served.session.actions)
    with served.stranger() as stranger:
        assert served.post(stranger, path, LABEL).status_code == 401
    assert len(served.session.actions) == before


@pytest.mark.parametrize("value", ["", "x", "a" * 5000, "ü"])
def test_a_wrong_cookie_is_refused(served, value):
    cookie = f"{served.keys.cookie}={value}".encode()
    with served.stranger() as stranger:
        assert stranger.get("/api/state", headers=[(b"cookie", cookie)]).status_code == 401


def test_the_right_secret_under_another_name_is_refused(served, client):
    value = client.cookies[served.keys.cookie]
    with served.stranger() as stranger:
        assert stranger.get("/api/state", headers={"Cookie": f"greenlabel={value}"}).status_code == 401
        assert stranger.get("/api/state", headers={"Cookie": f"{served.keys.cookie}={value}"}).status_code == 200


def test_the_token_works_once_and_the_terminal_then_shows_another(served):
    served.keys.renew()
    token, n_printed = served.keys.token, len(served.printed)
    with served.stranger() as first, served.stranger() as second:
        assert first.get("/", params={"token": token}).status_code == 200
        assert first.get("/api/state").status_code == 200
        used = second.get("/", params={"token": token})
        assert used.status_code == 401
        assert "used already" in used.text
        assert second.get("/api/state").status_code == 401
        assert len(served.printed) == n_printed + 1
        assert served.printed[-1] not in (token, used.text)
        for _ in range(3):  # wrong ones do not make the terminal print more
            second.get("/", params={"token": "wrong"})
        assert len(served.printed) == n_printed + 1
        assert second.get("/", params={"token": served.printed[-1]}).status_code == 200
        assert second.get("/api/state").status_code == 200
        assert first.get("/api/state").status_code == 200


def test_a_browser_that_is_in_may_open_its_address_again(served, client):
    assert client.get("/", params={"token": "used before"}).status_code == 200


@pytest.mark.parametrize("token", ["", "x", "ü", "\x00", "a" * 3000])
def test_a_wrong_token_is_refused(served, token):
    with served.stranger() as stranger:
        assert stranger.get("/", params={"token": token}).status_code == 401
        assert not stranger.cookies


def test_the_token_is_taken_at_the_door_alone(served):
    served.keys.renew()
    with served.stranger() as stranger:
        for path in ("/api/state", "/static/index.html"):
            assert stranger.get(path, params={"token": served.keys.token}).status_code == 401
        assert stranger.post("/", params={"token": served.keys.token}).status_code == 401


def test_secrets_are_compared_in_constant_time(monkeypatch):
    seen = []
    monkeypatch.setattr(security.hmac, "compare_digest", lambda one, other: seen.append((one, other)) or one == other)
    keys = security.Keys(1, lambda token: None)
    secret = keys.exchange(keys.token)
    assert keys.admits([f"greenlabel-1={secret}"])
    assert len(seen) == 2


def test_the_cookie_is_hidden_from_scripts_and_other_sites_and_named_by_the_port(served):
    served.keys.renew()
    with served.stranger() as stranger:
        reply = stranger.get("/", params={"token": served.keys.token})
    name_and_value, *attributes = reply.headers["set-cookie"].split("; ")
    assert name_and_value.startswith(f"greenlabel-{served.address.port}=")
    assert {one.lower() for one in attributes} == {"httponly", "path=/", "samesite=strict"}


def test_the_page_after_the_token_goes_on_without_it(served):
    served.keys.renew()
    with served.stranger() as stranger:
        reply = stranger.get("/", params={"token": served.keys.token})
    assert 'content="0;url=/"' in reply.text
    assert served.keys.token not in reply.text
    assert "location" not in reply.headers


def test_tokens_and_secrets_differ_and_are_long():
    keys = [security.Keys(1, lambda token: None) for _ in range(20)]
    tokens = {one.token for one in keys}
    secrets = {one.exchange(one.token) for one in keys}
    assert len(tokens | secrets) == 40
    assert min(map(len, tokens | secrets)) >= 32


# POST


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(
    ("missing", "status"), [({"Origin": None}, 403), ({"X-Greenlabel": None}, 403), ({"Content-Type": None}, 415)]
)
def test_a_post_needs_its_headers(served, client, path, missing, status):
    before = len(served.session.actions)
    headers = {name: value for name, value in served.post_headers().items() if name not in missing}
    assert client.post(path, content=LABEL, headers=headers).status_code == status
    assert len(served.session.actions) == before


@pytest.mark.parametrize(
    "origin",
    ["null", "http://evil.example", "http://127.0.0.1", "https://127.0.0.1:{port}", "http://127.0.0.1:{port}0"],
)
def test_a_post_of_another_origin_is_refused(served, client, origin):
    before = len(served.session.actions)
    reply = served.post(client, "/api/action", LABEL, Origin=origin.format(port=served.address.port))
    assert reply.status_code == 403
    assert len(served.session.actions) == before


def test_the_origin_need_not_be_the_host_but_must_be_listed(served, client):
    """That the two are equal proves nothing where a foreign name was made to lead here."""
    evil = {"Host": f"evil.example:{served.address.port}", "Origin": f"http://evil.example:{served.address.port}"}
    assert served.post(client, "/api/action", LABEL, **evil).status_code == 421
    assert (
        served.post(client, "/api/action", LABEL, Origin=f"http://localhost:{served.address.port}").status_code == 200
    )


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_what_a_form_can_send_is_refused(served, client, kind):
    assert served.post(client, "/api/action", LABEL, **{"Content-Type": kind}).status_code == 415


def test_actions_need_post(client):
    for path in POSTS:
        assert client.get(path).status_code == 405


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "FOO"])
def test_other_methods_do_nothing(served, client, method):
    assert client.request(method, "/api/state", headers={"Origin": "http://evil.example"}).status_code == 405
    with served.stranger() as stranger:  # nor do they get as far as the cookie
        assert stranger.request(method, "/api/state").status_code == 405


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", ["/api/state", "/api/picture/2", "/static/index.html"])
def test_what_a_browser_fetches_for_another_page_is_refused(client, site, path):
    """A page of another port of this machine is "same-site": the cookie would come along."""
    assert client.get(path, headers={"Sec-Fetch-Site": site}).status_code == 403
    assert client.get(path, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


# Headers


@pytest.mark.parametrize("path", [path for path in EVERYTHING if "events" not in path])
def test_every_reply_carries_the_policy(served, client, path):
    with served.stranger() as stranger:
        replies = [client.get(path), stranger.get(path), client.get(path, headers={"Host": "evil.example"})]
    for reply in replies:
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert reply.headers["cross-origin-opener-policy"] == "same-origin"
        assert reply.headers["cross-origin-resource-policy"] == "same-origin"
        assert not [name for name in reply.headers if name.startswith("access-control")]
        assert "server" not in reply.headers
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy


def test_the_policy_of_the_page_is_exactly_this(client):
    assert client.get("/").headers["content-security-policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


@pytest.mark.parametrize("path", [path for path in EVERYTHING if path.startswith("/api") and "events" not in path])
def test_what_the_session_says_is_not_kept_by_the_browser(client, path):
    kept = "private, max-age=3600" if "picture" in path else "no-store"
    assert client.get(path).headers["cache-control"] == kept


def test_pictures_have_their_own_type_and_can_do_nothing(client):
    reply = client.get("/api/picture/2")
    assert reply.headers["content-type"] == "image/png"
    assert reply.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert reply.headers["x-content-type-options"] == "nosniff"


def test_cells_come_as_json_which_no_browser_takes_for_a_page(client):
    reply = client.get("/api/row/1")
    assert reply.headers["content-type"] == "application/json"
    assert "<script>" in reply.json()["fields"][0][1]


def test_refusals_do_not_repeat_markup(served):
    with served.stranger() as stranger:
        assert "<script" not in stranger.get("/", params={"token": "<script>"}).text


# Paths and numbers


@pytest.mark.parametrize(
    "path",
    [
        "/static/../routes.py",
        "/static/..%2f..%2fapp%2froutes.py",
        "/static/%2e%2e/app/routes.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/..\\app\\routes.py",
        "/static/index.html%00.js",
        "/static/",
        "/static/..",
        "/static/%2e%2e",
        "/static/.",
        "/static/.hidden",
        "//evil.example/",
        "/api/picture/../../etc/passwd",
        "/api/picture/..%2f..%2fetc%2fpasswd",
    ],
)
def test_no_path_leads_out_of_the_list_of_files(served, client, path):
    cookie = f"{served.keys.cookie}={client.cookies[served.keys.cookie]}"
    head = f"GET {path} HTTP/1.1\r\nHost: {served.address.hosts[0]}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
    reply = served.raw(head.encode())
    assert reply.split()[1] in (b"404", b"307", b"400")
    assert b"root:" not in reply
    assert b"import" not in reply


@pytest.mark.parametrize(
    "row", ["-1", "50", "999999999999", "9" * 400, "1.0", "1e3", "true", "NaN", "١", "0x1", " 1", "1 "]
)
@pytest.mark.parametrize("path", ["row", "picture"])
def test_rows_that_are_none_are_one_sentence(client, row, path):
    reply = client.get(f"/api/{path}/{row}")
    assert reply.status_code == 404
    assert reply.json()["error"].endswith(".")
    assert len(reply.text) < 200


@pytest.mark.parametrize(
    "rows",
    ["[-1]", "[50]", "[1.0]", "[1.5]", "[true]", "[null]", '["1"]', "[[1]]", "{}", "7", "null", '"1"', "[1e400]"],
)
@pytest.mark.parametrize("path", ["/api/action", "/api/selection"])
def test_rows_of_a_post_are_whole_numbers_of_the_table(served, client, rows, path):
    before = len(served.session.actions)
    body = f'{{"rows": {rows}}}' if "selection" in path else f'{{"id": "1", "do": "label", "rows": {rows}, "class": 3}}'
    reply = served.post(client, path, body)
    assert reply.status_code in (400, 404)
    assert reply.json()["error"].endswith(".")
    assert len(served.session.actions) == before


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"1",
        b"null",
        b'"text"',
        b"{",
        b"\xff\xfe",
        b'{"rows": [1], "rows": [2]}',
        b'{"rows": [1], "class": NaN}',
        b'{"rows": [1], "class": Infinity}',
        b'{"rows": [1], "class": true}',
        b'{"rows": [1], "class": 1.5}',
        b'{"rows": [1], "path": "/etc/passwd"}',
        b'{"rows": [' + b"9" * 5000 + b"]}",
        b'{"rows": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    ],
    ids=range(16),
)
def test_odd_json_is_one_sentence(served, client, body):
    reply = served.post(client, "/api/selection", body)
    assert reply.status_code in (400, 404)
    assert len(reply.json()["error"]) < 200


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_have_are_refused_wherever_they_stand(constant):
    with pytest.raises(protocol.Refusal, match="is no JSON"):
        protocol.read_json(f'{{"id": [{constant}]}}'.encode())


@pytest.mark.parametrize("body", ['{"report": 1}', '{"model": "yes"}', '{"out": "/etc/passwd"}'])
def test_what_is_saved_and_where_is_not_up_to_the_request(served, client, body):
    assert served.post(client, "/api/save", body).status_code == 400
    assert not served.service.source.saved


# Bodies and connections


def head_of(served, client, *lines):
    cookie = f"{served.keys.cookie}={client.cookies[served.keys.cookie]}"
    own = [f"{name}: {value}" for name, value in served.post_headers().items()]
    return "\r\n".join(
        ["POST /api/action HTTP/1.1", f"Host: {served.address.hosts[0]}", f"Cookie: {cookie}", *own, *lines, "", ""]
    ).encode()


def test_a_body_that_is_announced_too_long_is_refused_unread(served, client):
    reply = served.raw(head_of(served, client, f"Content-Length: {max_body(served.service.n) + 1}"))
    assert reply.split()[1] == b"413"


@pytest.mark.parametrize("length", ["99999999999999999999999999", "-1", "x"])
def test_lengths_that_are_none_are_refused(served, client, length):
    reply = served.raw(head_of(served, client, f"Content-Length: {length}"), wait=3)
    assert reply.split()[1] in (b"400", b"413")


def test_a_body_in_parts_is_refused_when_it_becomes_too_long(served, client):
    """Nobody says how long it will be; it ends long before all of it was taken in."""
    with socket.create_connection(("127.0.0.1", served.address.port), timeout=10) as connection:
        connection.sendall(head_of(served, client, "Transfer-Encoding: chunked"))
        sent = 0
        part = b"10000\r\n" + b" " * 65536 + b"\r\n"
        try:
            while sent < 100 * 2**20:
                connection.sendall(part)
                sent += len(part)
        except OSError:
            pass
        assert sent < 50 * 2**20
        reply = received(connection)
    assert not reply or reply.split()[1] == b"413"


def test_a_long_body_is_refused_with_its_status(served, client):
    reply = served.post(client, "/api/action", b" " * (max_body(served.service.n) + 1))
    assert reply.status_code == 413
    assert "bytes" in reply.json()["error"]


def test_all_rows_fit_into_a_request(served, client):
    rows = list(range(served.service.n))
    assert served.post(client, "/api/selection", f'{{"rows": {rows}}}').json()["size"] == served.service.n
    assert len(str({"rows": list(range(100_000))})) < max_body(100_000) < 1.2e6


def test_a_body_that_never_ends_is_given_up(served, client, monkeypatch):
    monkeypatch.setattr(protocol.read_body, "__defaults__", (0.3,))
    reply = served.raw(head_of(served, client, "Content-Length: 100") + b"{", wait=10)
    assert reply.split()[1] == b"408"


def test_a_connection_that_says_nothing_is_closed(monkeypatch):
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.3)
    with serving() as served:
        silent = socket.create_connection(("127.0.0.1", served.address.port), timeout=10)
        slow = socket.create_connection(("127.0.0.1", served.address.port), timeout=10)
        with silent, slow:
            with suppress(OSError):
                for _ in range(50):  # a byte now and then does not keep it open
                    slow.sendall(b"G")
                    time.sleep(0.1)
                pytest.fail("a slow connection stays open")
            assert received(silent) == b""


def test_a_connection_that_waits_for_the_next_key_press_stays_open(monkeypatch):
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.2)
    with serving() as served, served.client() as client:
        until(lambda: served.service.status()["stage"]["name"] == "ready")
        for _ in range(3):
            assert client.get("/api/state").status_code == 200
            time.sleep(0.3)
        assert len(served.server.server_state.connections) == 1


def test_the_number_of_connections_is_bounded(monkeypatch):
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 5)
    with serving() as served, served.client() as client:
        others = [socket.create_connection(("127.0.0.1", served.address.port)) for _ in range(5)]
        until(lambda: len(served.server.server_state.connections) >= 6)
        assert client.get("/api/state").status_code == 503
        for one in others:
            one.close()
        until(lambda: len(served.server.server_state.connections) <= 1)
        with served.client() as again:
            assert again.get("/api/state").status_code == 200


def test_a_head_that_never_ends_is_refused(served):
    reply = served.raw(b"GET / HTTP/1.1\r\nX: " + b"a" * 200_000)
    assert not reply or reply.split()[1] == b"400"


def test_no_websocket_is_opened(served, client):
    cookie = f"{served.keys.cookie}={client.cookies[served.keys.cookie]}"
    head = f"GET /api/events HTTP/1.1\r\nHost: {served.address.hosts[0]}\r\nCookie: {cookie}\r\nOrigin: http://evil.example\r\n"
    head += "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    head += "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    assert b"101" not in served.raw(head.encode(), wait=1).split(b"\r\n")[0]


def test_whatever_is_not_http_does_not_get_through():
    """The server makes no such requests of its own; another one might."""
    reached = []

    async def routes(scope, receive, send):
        reached.append(scope["type"])

    guard = security.Guard(routes, ["127.0.0.1:1"], security.Keys(1, reached.append))
    asyncio.run(guard({"type": "websocket", "path": "/", "headers": []}, None, None))
    assert reached == []


# Errors and logs


class BadSource(SmallSource):
    def picture(self, row):
        raise RuntimeError("/home/someone/secret.png is broken")


def test_errors_of_ours_are_told_to_the_terminal_alone(capfd):
    with serving(source=BadSource()) as served, served.client() as client:
        reply = client.get("/api/picture/2")
    assert reply.status_code == 500
    assert reply.json() == {"error": "Something went wrong in greenlabel; the terminal says what."}
    assert "secret.png is broken" in capfd.readouterr().err


def test_a_full_disk_is_a_sentence_without_a_path():
    with serving() as served, served.client() as client:
        until(lambda: served.service.status()["stage"]["name"] == "ready")
        served.session.error = OSError(28, "No space left on device", "/home/someone/table.csv")
        reply = served.post(client, "/api/action", LABEL)
    assert reply.status_code == 507
    assert reply.json() == {"error": "This could not be done: No space left on device."}


def test_no_log_is_kept_in_which_the_token_could_be(capfd, caplog):
    caplog.set_level(logging.DEBUG)
    with serving() as served:
        with served.client() as client:
            client.get("/api/state")
            client.get("/", params={"token": served.keys.token})
        served.raw(b"nonsense\r\n\r\n", wait=1)
    said = capfd.readouterr()
    assert [record for record in caplog.records if record.name.startswith("uvicorn")] == []
    assert served.server.config.access_log is False
    assert said.out + said.err == ""


# Addresses


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "[::]", "8.8.8.8"])
def test_an_address_that_others_can_reach_needs_a_second_word(host):
    with pytest.raises(ParameterError, match=r"without encryption.*--allow-network"):
        server.check_host(host, allow_network=False)
    assert server.check_host(host, allow_network=True) == host.strip("[]")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "127.0.0.2"])
def test_addresses_of_this_machine_need_none(host):
    assert server.check_host(host, allow_network=False)


@pytest.mark.parametrize("host", ["", "evil.example", "127.0.0.1:80", "300.1.1.1"])
def test_what_is_no_address_is_refused(host):
    with pytest.raises(ParameterError, match="is no address"):
        server.check_host(host, allow_network=True)


def test_the_server_listens_on_loopback_alone(served):
    (listening,) = served.server.servers[0].sockets
    assert listening.getsockname()[0] == "127.0.0.1"


def test_an_open_server_answers_to_the_addresses_of_the_machine_and_to_no_other():
    with serving(host="0.0.0.0") as served:
        port = served.address.port
        assert f"127.0.0.1:{port}" in served.address.hosts
        assert f"0.0.0.0:{port}" not in served.address.hosts
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
            assert client.get("/").status_code == 401
            assert client.get("/", headers={"Host": f"evil.example:{port}"}).status_code == 421
            client.get("/", params={"token": served.keys.token})
            assert read_frame(client.get("/api/frame").content, served.service.n)
