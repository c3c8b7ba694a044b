"""The sessions of the Claude Agent SDK for Python in a store of ctxdir: see README.md."""

from __future__ import annotations

import asyncio
import hashlib
import re
import uuid
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote

from .client import Client, Problem, encode, to_bytes

_TOOL = "claude-code"
_MAX_TITLE = 200  # UTF-16 code units
_IS_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

# Types of entries that people do not read: those that an import of Claude Code's files marks, too.
_BOOKKEEPING = frozenset(
    """progress file-history-snapshot queue-operation summary pr-link custom-title ai-title agent-name agent-color
    agent-setting last-prompt permission-mode mode tag attribution-snapshot content-replacement worktree-state
    system/stop_hook_summary system/turn_duration""".split()
)


class SessionStore:
    """A session is a context, an entry is a message, and what a subpath names, such as a sub-agent, is a branch.

    The stored form is that of the client for JavaScript: each reads what the other stored.
    """

    def __init__(self, client: Client):
        self._client = client

    async def append(self, key: Any, entries: list[Any]) -> None:
        """Append entries. An entry with the uuid of an earlier one is stored again only if it differs."""
        if entries:
            await asyncio.to_thread(self._append, key, list(entries))

    async def load(self, key: Any) -> list[Any] | None:
        """Return all entries in order, or None if there are none."""
        return await asyncio.to_thread(self._load, key)

    async def list_sessions(self, project_key: str) -> list[Any]:
        """Return the sessions of a project. mtime is in milliseconds since 1970."""
        return await asyncio.to_thread(self._list_sessions, project_key)

    async def list_subkeys(self, key: Any) -> list[str]:
        """Return the subpaths of a session."""
        return await asyncio.to_thread(self._list_subkeys, key)

    async def delete(self, key: Any) -> None:
        """Move a session, or what a subpath names, to the trash."""
        await asyncio.to_thread(self._delete, key)

    def _append(self, key: Any, entries: list[Any]) -> None:
        labels = {"tool": _TOOL, "project_key": key["project_key"]}
        context = self._client.open(_external_id(key), labels=labels)
        subpath = key.get("subpath") or ""
        changes = [_append_of(subpath, [(e, _id_of(e, subpath)) for e in entries])]
        # A session is listed once it has a transcript of its own.
        update = {} if subpath else _describe(context, entries, key["session_id"], self._summary(context["id"], entries))
        if update:
            changes.append({"op": "update", "update": update})
        try:
            self._commit(context["id"], subpath, changes)
        except Problem as problem:
            if problem.code != "conflict":
                raise
            # An entry came again with other content: it is stored beside the first one.
            for entry in entries:
                self._append_one(context["id"], subpath, entry)

    def _append_one(self, context: str, subpath: str, entry: Any) -> None:
        for text in ("", encode(entry)):
            try:
                return self._commit(context, subpath, [_append_of(subpath, [(entry, _id_of(entry, subpath, text))])])
            except Problem as problem:
                if problem.code != "conflict" or text:
                    raise

    def _commit(self, context: str, subpath: str, changes: list[Any]) -> None:
        """Make changes one commit. It can be sent again, since all messages have ids."""
        try:
            self._client.commit(context, changes, repeat=True)
        except Problem as problem:
            if problem.code != "not_found" or "branch" not in problem.document:
                raise
            self._client.ensure_branch(context, subpath)
            self._client.commit(context, changes, repeat=True)

    def _load(self, key: Any) -> list[Any] | None:
        entries = []
        for line in _found(lambda: list(self._client.read(_external_id(key), key.get("subpath") or "main"))) or []:
            if line.get("message") is None:
                raise ValueError(f"the entry at position {line['position']} is unavailable: {line.get('unavailable')}")
            entries.append(line["message"])
        return entries or None

    def _list_sessions(self, project_key: str) -> list[Any]:
        label = [f"tool={_TOOL}", f"project_key={project_key}"]
        found = self._client.contexts(label=label, sort="created")
        return [
            {"session_id": c["labels"]["session"], "mtime": _milliseconds(c["updated_at"])} for c in found if c["labels"].get("session")
        ]

    def _list_subkeys(self, key: Any) -> list[str]:
        branches = _found(lambda: self._client.branches(_external_id(key))) or []
        return [b["name"] for b in branches if b["name"] != "main" and b["messages"]]

    def _delete(self, key: Any) -> None:
        path, names = "/v1/contexts/{context}", {"context": _external_id(key)}
        if key.get("subpath"):
            path, names = path + "/branches/{branch}", {**names, "branch": key["subpath"]}
        _found(lambda: self._client.request("DELETE", path, names=names))

    def _summary(self, context: str, entries: list[Any]) -> str | None:
        """Return the newest summary, if it is about an entry of this session: Claude Code stores those of others, too."""
        newest = next((e for e in reversed(entries) if e.get("type") == "summary"), {})
        summary, leaf = newest.get("summary"), newest.get("leafUuid")
        if not summary or any(e.get("uuid") == leaf for e in entries):
            return summary
        if not isinstance(leaf, str) or not _IS_UUID.fullmatch(leaf):
            return None
        path, names = "/v1/contexts/{context}/branches/main/messages/{id}", {"context": context, "id": leaf}
        return summary if _found(lambda: self._client.request("GET", path, names=names, query={"content": "none"})) else None


def _found(request: Callable[[], Any]) -> Any:
    """Return what a request returns, or None if the server does not find what it names."""
    try:
        return request()
    except Problem as problem:
        if problem.code != "not_found":
            raise
        return None


def _external_id(key: Any) -> str:
    return f"claude/{_component(key['project_key'])}/{_component(key['session_id'])}"


def _component(text: str) -> str:
    """Encode as JavaScript's encodeURIComponent."""
    return quote(text, safe="!*'()")


def _id_of(entry: Any, subpath: str, text: str = "") -> str:
    """Return the id of the message of an entry, by which a repetition is known: random if the entry has none."""
    own = entry.get("uuid")
    if not own:
        return str(uuid.uuid4())
    if isinstance(own, str) and _IS_UUID.fullmatch(own) and not subpath and not text:
        return own
    b = bytearray(hashlib.sha256(to_bytes(encode([subpath, own, text]))).digest()[:16])
    b[6] = b[6] & 0x0F | 0x80
    b[8] = b[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(b)))


def _append_of(subpath: str, entries: list[Any]) -> dict[str, Any]:
    messages = [{"id": i, **({"role": "bookkeeping"} if _is_bookkeeping(e) else {}), "message": e} for e, i in entries]
    return {"op": "append", "branch": subpath or "main", "messages": messages}


def _is_bookkeeping(entry: Any) -> bool:
    return entry.get("type") in _BOOKKEEPING or f"{entry.get('type')}/{entry.get('subtype')}" in _BOOKKEEPING


def _describe(context: Any, entries: list[Any], session: str, summary: str | None) -> dict[str, Any]:
    """Return what entries say about their session. Its title is the newest one that a person or the tool set, else the prompt."""
    title, labels = context.get("title"), context.get("labels", {})
    said = next((e for e in reversed(entries) if e.get("customTitle") or e.get("aiTitle")), {})
    prompt = next((p for p in map(_prompt, entries) if p is not None), None)
    text = said.get("customTitle") or said.get("aiTitle") or summary or title or prompt
    first = {member: next((e[member] for e in entries if e.get(member)), None) for member in ("cwd", "gitBranch")}
    found = {"session": session, "project": first["cwd"], "git_branch": first["gitBranch"]}
    missing = {label: value for label, value in found.items() if value and not labels.get(label)}
    return {**({"title": text} if text and text != title else {}), **({"labels": missing} if missing else {})}


def _prompt(entry: Any) -> str | None:
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if entry.get("type") != "user" or entry.get("isMeta") or not isinstance(content, str):
        return None
    line = content.strip().partition("\n")[0]
    line = line.encode("utf-16-le", "surrogatepass")[: 2 * _MAX_TITLE].decode("utf-16-le", "surrogatepass")
    return re.sub("[\ud800-\udbff]$", "", line)  # the half of a pair


def _milliseconds(time: str) -> int:
    """Return a time in UTC of RFC 3339 in milliseconds since 1970."""
    seconds, _, fraction = time.removesuffix("Z").partition(".")
    at = datetime.strptime(seconds, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    return int(at.timestamp()) * 1000 + int((fraction + "000")[:3])
