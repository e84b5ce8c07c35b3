"""The real command in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "serving.cli"]
STARTING_SECONDS = 600.0


class CascadeProcess:
    """`cascade serve` on a free port."""

    def __init__(self, config: Path, **environment: str) -> None:
        self.config = config
        self._environment = {**os.environ, **environment}
        self._output = config.parent / "output.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def start(self) -> None:
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                [*COMMAND, "serve", "--port", "0", "--config", str(self.config)],
                stdout=output,
                stderr=output,
                env=self._environment,
            )
        since = self._output.stat().st_size
        wait_for(lambda: self._ready(since), STARTING_SECONDS, self.said)

    def said(self) -> str:
        return self._output.read_text(errors="replace")

    def _ready(self, since: int) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.said()
        said = self._output.read_bytes()[since:].decode(errors="replace")
        if "curl -i " not in said:
            return False
        self.url = said.partition("curl -i ")[2].partition("/v1")[0]
        return True

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        self._process.wait(60)
        self._process = None

    def get(self, path: str) -> tuple[int, Any]:
        return _answer(urllib.request.Request(f"{self.url}{path}"))[:2]

    def ask(self, model: str, text: str, **fields: Any) -> tuple[int, Any, dict[str, str]]:
        body = {"model": model, "messages": [{"role": "user", "content": text}], **fields}
        return _answer(
            urllib.request.Request(
                f"{self.url}/v1/chat/completions",
                data=json.dumps(body).encode(),
                headers={"content-type": "application/json"},
            )
        )

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [*COMMAND, *arguments, "--config", str(self.config)],
            capture_output=True,
            text=True,
            check=True,
            env=self._environment,
        )
        return done.stdout


def wait_for(
    condition: Callable[[], bool], seconds: float, said: Callable[[], str] = lambda: ""
) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s; {said()[-3000:]}"
        time.sleep(0.05)


def _answer(request: urllib.request.Request) -> tuple[int, Any, dict[str, str]]:
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            return response.status, json.load(response), dict(response.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error), dict(error.headers)
