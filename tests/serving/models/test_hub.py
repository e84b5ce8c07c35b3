import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from serving.models.fetch import ensure
from serving.models.hub import Hub
from serving.models.sources import SourceError, silent


@dataclass
class FakeHub:
    """What the server on the loopback interface does, and what it was asked."""

    content: bytes
    url: str = ""
    status: int = 200
    cut_after: list[int] = field(default_factory=list)
    ranges: bool = True
    page: bytes | None = None
    asked: list[tuple[str, str | None]] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    hub: FakeHub

    def do_GET(self) -> None:
        hub = self.hub
        if "/resolve/" in self.path:
            self.send_response(302)
            self.send_header("Location", "/elsewhere" + self.path.replace("/resolve/", "/cdn/"))
            self.end_headers()
            return
        hub.asked.append((self.path, self.headers["Range"]))
        body, start = hub.page or hub.content, 0
        if hub.status == 200 and hub.ranges and self.headers["Range"]:
            start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            self.send_response(hub.status)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        self.wfile.write(
            body[start : start + hub.cut_after.pop(0)] if hub.cut_after else body[start:]
        )
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def server(content: bytes) -> Iterator[FakeHub]:
    hub = FakeHub(content)
    handler = type("Bound", (Handler,), {"hub": hub})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        hub.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, args=[0.01])
        thread.start()
        yield hub
        http.shutdown()
        thread.join()


def test_the_file_comes_through_a_redirect(server, model, content, tmp_path: Path, heard):
    staged = Hub(server.url).fetch(model, tmp_path, heard)
    assert staged.read_bytes() == content
    assert server.asked == [(f"/elsewhere/{model.repository}/cdn/main/{model.file}", None)]
    assert heard.last == (len(content), len(content))


def test_the_mirror_can_be_named_in_the_environment(
    server, model, content, tmp_path: Path, monkeypatch
):
    monkeypatch.setenv("HF_ENDPOINT", server.url + "/")
    assert Hub().fetch(model, tmp_path, silent).read_bytes() == content


def test_a_broken_download_goes_on_where_it_broke(server, model, content, tmp_path: Path):
    server.cut_after = [4000, 1000]
    staged = Hub(server.url, pause_seconds=0).fetch(model, tmp_path, silent)
    assert staged.read_bytes() == content
    assert [span for _, span in server.asked] == [None, "bytes=4000-", "bytes=5000-"]


def test_a_download_that_gets_no_further_is_given_up_and_kept(
    server, model, content, tmp_path: Path
):
    server.cut_after = [4000, 0]
    with pytest.raises(SourceError, match=server.url):
        Hub(server.url, pause_seconds=0).fetch(model, tmp_path, silent)
    hub = Hub(server.url)
    assert hub.space_bytes(model, tmp_path) == len(content) - 4000
    assert hub.fetch(model, tmp_path, silent).read_bytes() == content
    assert server.asked[-1][1] == "bytes=4000-"


def test_a_server_that_cannot_resume_sends_it_all_again(server, model, content, tmp_path: Path):
    server.cut_after = [4000]
    server.ranges = False
    staged = Hub(server.url, pause_seconds=0).fetch(model, tmp_path, silent)
    assert staged.read_bytes() == content


def test_resumed_bytes_that_do_not_fit_are_caught_by_the_sum(
    server, model, content, tmp_path: Path, good_source
):
    partial = tmp_path / "models" / f"{model.file}.partial"
    partial.parent.mkdir()
    partial.write_bytes(b"?" * 4000)
    path = ensure(model, tmp_path, sources=[Hub(server.url), good_source])
    assert path.read_bytes() == content
    assert good_source.calls == ["tiny"]
    assert not partial.exists()


def test_a_partial_file_that_is_too_long_is_thrown_away(server, model, content, tmp_path: Path):
    (tmp_path / f"{model.file}.partial").write_bytes(content + b"?")
    assert Hub(server.url).fetch(model, tmp_path, silent).read_bytes() == content
    assert server.asked[0][1] is None


def test_a_refusal_is_told(server, model, tmp_path: Path):
    server.status = 404
    with pytest.raises(SourceError, match="answers 404 Not Found"):
        Hub(server.url).fetch(model, tmp_path, silent)


def test_a_log_in_page_is_not_taken_for_the_file(server, model, tmp_path: Path):
    server.page = b"<html>log in first</html>"
    with pytest.raises(SourceError, match="has a file of 25 bytes, not 10240"):
        Hub(server.url).fetch(model, tmp_path, silent)
    assert not list(tmp_path.iterdir())


def test_a_host_that_refuses_is_told(model, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(SourceError, match=f"127.0.0.1:{port}"):
        Hub(f"http://127.0.0.1:{port}").fetch(model, tmp_path, silent)


def test_a_host_that_says_nothing_is_given_up(model, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        hub = Hub(f"http://127.0.0.1:{listener.getsockname()[1]}", read_seconds=0.05)
        with pytest.raises(SourceError, match=r"(?i)time"):
            hub.fetch(model, tmp_path, silent)
