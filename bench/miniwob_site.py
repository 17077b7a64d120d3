"""Task pages of MiniWoB++ on loopback; the reward leaves the page only after the claim about it was written down."""

import json
import mimetypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

# Runs in the task page: starts the drawn episode, hides the reward, and tells it when the page is left.
LAB_SCRIPT = b"""
(() => {
  const asked = new URLSearchParams(location.search);
  const hide = document.createElement('style');
  hide.textContent = '#reward-display, #click-canvas { display: none !important; }';
  document.head.append(hide);
  window.addEventListener('load', () => {
    core.EPISODE_MAX_TIME = 3600000;
    Math.seedrandom(asked.get('seed'));
    core.startEpisodeReal();
  });
  window.addEventListener('pagehide', () => {
    const truth = JSON.stringify({ raw: WOB_RAW_REWARD_GLOBAL, done: WOB_DONE_GLOBAL });
    navigator.sendBeacon('/_truth/' + asked.get('run'), truth);
  });
})();
"""


@dataclass(frozen=True, slots=True)
class Reward:
    raw: float
    done: bool

    @property
    def success(self) -> bool:
        return self.done and self.raw >= 0.999


class TaskSite:
    """Where the tasks are, and what each run was worth."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.base_url = ""
        self._rewards: dict[str, Reward] = {}
        self._told = threading.Condition()

    def url(self, task: str, run: str, seed: int) -> str:
        return f"{self.base_url}/miniwob/{task}.html?run={run}&seed={seed}"

    def tell(self, run: str, reward: Reward) -> None:
        with self._told:
            self._rewards.setdefault(run, reward)
            self._told.notify_all()

    def reward(self, run: str, timeout_s: float = 10.0) -> Reward | None:
        with self._told:
            self._told.wait_for(lambda: run in self._rewards, timeout_s)
            return self._rewards.get(run)


def _handler(site: TaskSite) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            if path == "/_lab.js":
                self._send(200, "text/javascript", LAB_SCRIPT)
                return
            file = (site.root / path.lstrip("/")).resolve()
            if not file.is_file() or not file.is_relative_to(site.root.resolve()):
                self._send(404, "text/plain", b"nothing here")
                return
            body = file.read_bytes()
            if file.suffix == ".html":
                body = body.replace(b"</body>", b'<script src="/_lab.js"></script></body>')
            self._send(200, mimetypes.guess_type(file.name)[0] or "application/octet-stream", body)

        def do_POST(self) -> None:
            told = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
            site.tell(urlsplit(self.path).path.rsplit("/", 1)[1], Reward(float(told["raw"]), bool(told["done"])))
            self._send(204, "text/plain", b"")

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if status != 204:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def handle(self) -> None:
            try:
                super().handle()
            except (BrokenPipeError, ConnectionResetError):
                return  # the page was left while a file was still coming

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the standard library's
            return

    return Handler


@contextmanager
def task_site(package: Path) -> Iterator[TaskSite]:
    site = TaskSite(package / "miniwob" / "html")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(site))
    server.daemon_threads = True
    site.base_url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
