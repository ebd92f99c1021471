"""A small server on loopback that speaks the OpenAI chat completions protocol and follows a script."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any

from loopback import LoopbackServer, ServerOf


@dataclass(frozen=True)
class Reply:
    """Answer with this text."""

    text: str


@dataclass(frozen=True)
class Cut:
    """Answer with this text, and say that it was cut at the limit of its length, or withheld for what it says."""

    text: str
    reason: str = "length"


@dataclass(frozen=True)
class RateLimit:
    """Refuse with status 429 and ask the client to come back after so many seconds."""

    retry_after: float = 0.0


@dataclass(frozen=True)
class Hang:
    """Never answer, and note when the client gives up."""


Behaviour = Reply | Cut | RateLimit | Hang


class OpenAIServer(LoopbackServer):
    """Serves `POST /v1/chat/completions`, plain and streamed, one behaviour per request, while its context is open.

    A request beyond the script, or to another path, gets status 400 or 404, which clients do not retry.

    Args:
        *behaviours: What to do with the first, second, ... request.
    """

    def __init__(self, *behaviours: Behaviour) -> None:
        """Take a free port; requests are answered once the context is entered."""
        super().__init__(_Handler)
        self.behaviours: Sequence[Behaviour] = behaviours
        #: The JSON bodies of the requests so far, in order.
        self.requests: list[dict[str, Any]] = []
        self.lock = threading.Lock()
        #: Set when a `Hang` has begun, and when its client has closed the connection.
        self.hanging, self.abandoned = threading.Event(), threading.Event()

    @property
    def base_url(self) -> str:
        """The address for `ChatOpenAI(base_url=...)`."""
        return f"http://127.0.0.1:{self.port}/v1"


def client(server: OpenAIServer, **options: Any) -> Any:
    """Return a real client of the server."""
    from langchain_openai import ChatOpenAI  # here, so that the tests of the command do not load it

    settings: dict[str, Any] = {"model": "scripted", "base_url": server.base_url, "api_key": "test", "max_retries": 0}
    return ChatOpenAI(**settings | options)


class _Handler(BaseHTTPRequestHandler):
    server: ServerOf[OpenAIServer]

    def do_POST(self) -> None:
        script = self.server.owner
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            return self._error(404, f"no such path: {self.path}")
        with script.lock:
            position = len(script.requests)
            script.requests.append(body)
        if position >= len(script.behaviours):
            return self._error(400, f"request {position + 1}, but the script has {len(script.behaviours)} behaviours")
        match script.behaviours[position]:
            case Reply(text):
                self._reply(body, text)
            case Cut(text, reason):
                self._reply(body, text, reason)
            case Hang():
                self._hang(script)
            case RateLimit(retry_after):
                self._error(429, "too many requests", {"Retry-After": str(retry_after)})

    def _hang(self, script: OpenAIServer) -> None:
        self.close_connection = True
        self.connection.settimeout(0.01)
        script.hanging.set()
        while not script.stopped.is_set():
            try:
                if not self.connection.recv(1):
                    return script.abandoned.set()
            except TimeoutError:
                continue
            except ConnectionError:
                return script.abandoned.set()

    def _reply(self, body: dict[str, Any], text: str, end: str = "stop") -> None:
        common = {"id": "chatcmpl-1", "created": int(time.time()), "model": body["model"]}
        if not body.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": end}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            answer = common | {"object": "chat.completion", "choices": [choice], "usage": usage}
            return self._send(200, "application/json", json.dumps(answer).encode())
        deltas: list[tuple[dict[str, str], str | None]] = [({"role": "assistant", "content": ""}, None)]
        deltas += [({"content": word}, None) for word in re.findall(r"\s*\S+|\s+", text)]
        deltas += [({}, end)]
        events = [
            common
            | {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
            for delta, reason in deltas
        ]
        lines = [f"data: {json.dumps(event)}\n\n" for event in events] + ["data: [DONE]\n\n"]
        self._send(200, "text/event-stream", "".join(lines).encode())

    def _error(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        error = {"error": {"message": message, "type": "error", "param": None, "code": None}}
        self._send(status, "application/json", json.dumps(error).encode(), headers)

    def _send(self, status: int, kind: str, content: bytes, headers: dict[str, str] | None = None) -> None:
        try:
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
        except ConnectionError:
            pass  # the client did not wait

    def log_message(self, *args: Any) -> None:
        pass
