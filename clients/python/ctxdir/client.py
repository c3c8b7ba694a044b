"""The client of the HTTP API of ctxtool serve. It needs only the standard library."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import time
import uuid
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

LARGEST = 257 << 20
"""The limit of a document, and of a line, that the client reads, in bytes. The server accepts 256 MiB of messages."""

_CONTEXT = "/v1/contexts/{context}"
_BRANCH = _CONTEXT + "/branches/{branch}"
_MESSAGES = _BRANCH + "/messages"


class Problem(Exception):
    """An error that the server reported: a problem document of RFC 9457. `code` is for programs."""

    def __init__(self, document: dict[str, Any]):
        super().__init__(document)
        self.document = document
        self.code: str = document.get("code", "internal")
        self.status: int = document.get("status", 0)

    def __str__(self) -> str:
        return self.document.get("detail") or self.document.get("title") or self.code


def encode(value: Any) -> str:
    """Return JSON as JavaScript's JSON.stringify writes it, but for floats. NaN and infinities are a ValueError."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def to_bytes(text: str) -> bytes:
    """Encode JSON. A lone surrogate becomes an escape sequence, since UTF-8 has none."""
    return text.encode("utf-8", "backslashreplace")


class Client:
    """A client of one server. Threads can share it, since each request has a connection of its own.

    A method raises Problem if the server reports an error, and OSError if no answer arrives. `timeout` is the time without
    a byte after which a request fails, in seconds. A request without a second effect is sent up to `attempts` times, if no
    answer arrives or the server cannot answer now (status 503): reading, and what has an id or a key.
    """

    def __init__(
        self, url: str, token: str, *, timeout: float = 60, attempts: int = 5, ssl_context: ssl.SSLContext | None = None
    ):
        address = urlsplit(url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError("url: expected http://HOST:PORT or https://HOST")
        self._secure, self._host, self._port = address.scheme == "https", address.hostname, address.port
        self._token, self._timeout, self._attempts, self._ssl = token, timeout, attempts, ssl_context
        self._pause = time.sleep

    def request(
        self,
        method: str,
        path: str,
        *,
        names: dict[str, str] | None = None,
        query: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        body: Any = None,
        lines: Iterable[Any] | None = None,
        repeat: bool = False,
        raw: bool = False,
    ) -> Any:
        """Send a request, and return the JSON of the answer, an iterator over its lines, its bytes, or None.

        `names` replace the names in braces in the path. `repeat` says that a repetition of the request has no second effect.
        With `raw`, the answer is bytes whatever its type.
        """
        target = re.sub(r"\{(\w+)\}", lambda m: quote((names or {})[m[1]], safe=""), path)
        given = {k: str(v).lower() if isinstance(v, bool) else v for k, v in (query or {}).items() if v is not None}
        if given:
            target += "?" + urlencode(given, doseq=True)
        headers = {"Authorization": f"Bearer {self._token}", **(headers or {})}
        data = None
        if lines is not None:
            data, headers["Content-Type"] = to_bytes("".join(encode(line) + "\n" for line in lines)), "application/x-ndjson"
        elif body is not None:
            data, headers["Content-Type"] = to_bytes(encode(body)), "application/json"
        attempts = self._attempts if repeat or method.upper() == "GET" else 1
        for attempt in range(1, attempts + 1):
            try:
                return self._send(method.upper(), target, data, headers, raw)
            except (OSError, Problem) as error:
                if attempt >= attempts or isinstance(error, Problem) and error.status != 503:
                    raise
            self._pause(min(0.1 * 2**attempt, 2))

    def _send(self, method: str, target: str, data: bytes | None, headers: dict[str, str], raw: bool) -> Any:
        if self._secure:
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._ssl)
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        keep = False
        try:
            connection.request(method, target, data, headers)
            response = connection.getresponse()
            media = (response.getheader("Content-Type") or "").partition(";")[0]
            if response.status < 300 and media == "application/x-ndjson" and not raw:
                keep = True
                return _lines(connection, response)
            content = response.read(LARGEST + 1)
            if len(content) > LARGEST:
                raise ValueError(f"the answer exceeds the limit of {LARGEST} bytes")
            if response.length:
                raise ConnectionError("the answer ended early")
            if media == "application/problem+json":
                raise Problem(json.loads(content))
            if response.status >= 300 and response.status != 304:
                raise Problem({"status": response.status, "code": "internal", "detail": f"status {response.status}"})
            return (json.loads(content) if media == "application/json" and not raw else content) if content else None
        except http.client.HTTPException as error:
            raise ConnectionError(f"the answer is not complete: {error!r}") from error
        finally:
            if not keep:
                connection.close()

    def create(self, **members: Any) -> dict[str, Any]:
        """Create a context. `members` are those of NewContext, such as title and labels."""
        return self.request("POST", "/v1/contexts", headers=_key(None), body=members, repeat=True)

    def open(self, external_id: str, **members: Any) -> dict[str, Any]:
        """Open the context with an external id, or create it."""
        body = {"external_id": external_id, **members}
        return self.request("POST", "/v1/contexts", query={"open": True}, body=body, repeat=True)

    def context(self, context: str) -> dict[str, Any]:
        """Return a context: its title, labels, state, active branch and more."""
        return self.request("GET", _CONTEXT, names={"context": context})

    def contexts(self, limit: int | None = None, **conditions: Any) -> Iterator[dict[str, Any]]:
        """Yield at most `limit` contexts that meet all conditions, such as label=["user=ada"]."""
        return self._pages("/v1/contexts", "contexts", 1000, limit, conditions)

    def change(self, context: str, *, sequence: int | None = None, **members: Any) -> dict[str, Any]:
        """Change title, labels, config, state or the active branch, only if `sequence` is the number of the newest commit."""
        return self.request("PATCH", _CONTEXT, names={"context": context}, headers=_match(sequence), body=members)

    def remove(self, context: str) -> dict[str, Any]:
        """Move a context to the trash, and return the item there."""
        return self.request("DELETE", _CONTEXT, names={"context": context})

    def append(
        self,
        context: str,
        messages: Iterable[Any],
        branch: str = "main",
        *,
        ids: Iterable[str] | None = None,
        key: str | None = None,
        position: int | None = None,
    ) -> list[dict[str, Any]]:
        """Append messages as one commit, and return their ids and positions when all are durable.

        A repetition with the same `ids`, or with the same `key`, stores nothing twice. With `position`, it appends only if
        the first message gets this position.
        """
        lines = list(messages) if ids is None else [{"id": i, "message": m} for i, m in zip(ids, messages, strict=True)]
        names, query = {"context": context, "branch": branch}, {"position": position, "envelope": ids is not None}
        return list(self.request("POST", _MESSAGES, names=names, query=query, headers=_key(key), lines=lines, repeat=True))

    def read(
        self,
        context: str,
        branch: str = "main",
        *,
        start: int | None = None,
        end: int | None = None,
        last: int | None = None,
        content: str | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yield the messages from `start` to `end` without the latter, the newest `last`, or all.

        If the connection ends, it goes on after the last message that it yielded.
        """
        query = {"from": start, "to": end, "last": last, "content": content}
        failures = yielded = 0
        while True:
            try:
                for message in self.request("GET", _MESSAGES, names={"context": context, "branch": branch}, query=query):
                    following, yielded, failures = message["position"] + 1, yielded + 1, 0
                    yield message
                return
            except OSError:
                failures += 1
                if failures >= self._attempts:
                    raise
            if yielded:
                to = end if last is None else following + last - yielded
                query = {"from": following, "to": to, "content": content}

    def body(self, context: str, message: str, branch: str = "main") -> bytes:
        """Return the object of a framework byte for byte."""
        names = {"context": context, "branch": branch, "id": message}
        return self.request("GET", _MESSAGES + "/{id}/body", names=names, raw=True)

    def branches(self, context: str) -> list[dict[str, Any]]:
        """Return the branches in order of creation."""
        return self.request("GET", _CONTEXT + "/branches", names={"context": context})["branches"]

    def fork(
        self, context: str, name: str, branch: str | None = None, *, at: int | None = None, key: str | None = None
    ) -> dict[str, Any]:
        """Make a branch of the first `at` messages of another one, which copies nothing."""
        body = {k: v for k, v in {"name": name, "from": branch, "at": at}.items() if v is not None}
        return self.request("POST", _CONTEXT + "/branches", names={"context": context}, headers=_key(key), body=body, repeat=True)

    def ensure_branch(self, context: str, name: str) -> None:
        """Make an empty branch, unless the context has a branch of this name."""
        try:
            self.request("POST", _CONTEXT + "/branches", names={"context": context}, body={"name": name, "empty": True}, repeat=True)
        except Problem as problem:
            if problem.code != "exists":
                raise

    def rewind(self, context: str, to: int, branch: str = "main", *, sequence: int | None = None) -> dict[str, Any]:
        """Let a branch keep its first `to` messages, only if `sequence` is the number of the newest commit."""
        names = {"context": context, "branch": branch}
        return self.request("POST", _BRANCH + "/rewind", names=names, headers=_match(sequence), body={"to": to})

    def commit(self, context: str, changes: list[Any], *, repeat: bool = False) -> dict[str, Any]:
        """Make changes one commit. A repetition is safe if all appended messages have ids."""
        return self.request("POST", _CONTEXT + "/commit", names={"context": context}, body={"changes": changes}, repeat=repeat)

    def search(self, q: str, limit: int = 20, **conditions: Any) -> Iterator[dict[str, Any]]:
        """Yield at most `limit` messages that have these words, the best first."""
        return self._pages("/v1/search", "hits", 200, limit, {"q": q, **conditions})

    def assemble(self, **members: Any) -> dict[str, Any]:
        """Assemble what a model should see. `members` are those of AssembleRequest, such as context, query and max_tokens."""
        return self.request("POST", "/v1/assemble", body=members, repeat=True)

    def _pages(self, path: str, member: str, largest: int, limit: int | None, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
        cursor = None
        while limit is None or limit > 0:
            size = largest if limit is None else min(limit, largest)
            page = self.request("GET", path, query={**query, "limit": size, "cursor": cursor})
            yield from page[member]
            limit, cursor = None if limit is None else limit - len(page[member]), page.get("next")
            if not cursor:
                return


def _key(key: str | None) -> dict[str, str]:
    return {"Idempotency-Key": key or str(uuid.uuid4())}


def _match(sequence: int | None) -> dict[str, str]:
    return {} if sequence is None else {"If-Match": f'"{sequence}"'}


def _lines(connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> Iterator[Any]:
    """Yield the JSON of each line of an answer."""
    try:
        while line := response.readline(LARGEST + 1):
            if len(line) > LARGEST:
                raise ValueError(f"a line of the answer exceeds the limit of {LARGEST} bytes")
            if not line.endswith(b"\n"):
                raise ConnectionError("the answer ended early")
            yield json.loads(line)
        if response.length:
            raise ConnectionError("the answer ended early")
    except http.client.HTTPException as error:
        raise ConnectionError(f"the answer is not complete: {error!r}") from error
    finally:
        connection.close()
