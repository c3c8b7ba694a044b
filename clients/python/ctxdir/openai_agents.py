"""The sessions of the OpenAI Agents SDK for Python in a store of ctxdir: see README.md."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import uuid
from typing import Any

from .client import Client, Problem

_ITEMS = "/v1/conversations/{conversation}/items"
_IS_CONVERSATION = re.compile(r"conv_[0-9a-f]{32}")


class Session:
    """A session is a context, and an item is a message, as in the Conversations API that `ctxtool serve` answers.

    `session_id` is an id of a conversation, such as conv_0197b3c25d0e7a518c112f6f6f7f0a01, or any other text: then it is the
    external id of the context, which the session creates if it is missing. Without it, the session creates a conversation
    when it is first used.
    """

    session_settings: Any = None
    """The SDK's settings, of which `limit` is the limit of get_items, or None."""

    def __init__(self, client: Client, session_id: str = ""):
        self._client = client
        self._lock = threading.Lock()
        self.session_id = session_id

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the newest `limit` items, or all, in order and as they were added."""
        if limit is None:
            limit = getattr(self.session_settings, "limit", None)
        return await self._run(lambda context: [m["message"] for m in self._newest(context, limit)])

    async def add_items(self, items: list[Any]) -> None:
        """Add items as one commit. All of them are durable when it returns."""
        if items:
            await self._run(self._add, list(items))

    async def pop_item(self) -> Any:
        """Remove the newest item and return it, or None if there is none."""
        return await self._run(self._pop)

    async def clear_session(self) -> None:
        """Remove all items. They stay in the trash for a week."""
        await self._run(lambda context: self._client.rewind(context["id"], 0, context["active_branch"]))

    async def _run(self, operation: Any, *arguments: Any) -> Any:
        """Run an operation on the context in a thread."""

        def locked() -> Any:
            with self._lock:  # so that the session creates one conversation
                return operation(self._context(), *arguments)

        return await asyncio.to_thread(locked)

    def _context(self) -> dict[str, Any]:
        if not self.session_id:
            context = self._client.create()
            self.session_id = _conversation(context)
            return context
        if _IS_CONVERSATION.fullmatch(self.session_id):
            return self._client.context(str(uuid.UUID(self.session_id[5:])))
        return self._client.open(self.session_id)

    def _add(self, context: dict[str, Any], items: list[Any]) -> None:
        names, headers = {"conversation": _conversation(context)}, {"Idempotency-Key": str(uuid.uuid4())}
        self._client.request("POST", _ITEMS, names=names, headers=headers, body={"items": items}, repeat=True)

    def _pop(self, context: dict[str, Any]) -> Any:
        while newest := self._newest(context, 1):
            try:
                self._client.rewind(context["id"], newest[0]["position"], context["active_branch"], sequence=context["sequence"])
                return newest[0]["message"]
            except Problem as problem:
                if problem.code != "precondition":
                    raise
            context = self._context()  # another program changed it meanwhile
        return None

    def _newest(self, context: dict[str, Any], limit: int | None) -> list[Any]:
        """Return the messages of the newest `limit` items, or of all. Erased ones are left out."""
        if limit is not None and limit <= 0:
            return []
        last = limit
        while True:
            read = list(self._client.read(context["id"], context["active_branch"], last=last))
            found = [m for m in (self._available(context, m) for m in read) if m]
            if last is None or len(found) >= last or len(read) < last:
                return found if limit is None else found[-limit:]
            last *= 2

    def _available(self, context: dict[str, Any], message: dict[str, Any]) -> dict[str, Any] | None:
        """Return a message, or None if it was erased. Another one that cannot be read raises the Problem that says why."""
        if not message.get("unavailable"):
            return message
        try:
            return {**message, "message": json.loads(self._client.body(context["id"], message["id"], context["active_branch"]))}
        except Problem as problem:
            if problem.code != "erased":
                raise
            return None


def _conversation(context: dict[str, Any]) -> str:
    return "conv_" + uuid.UUID(context["id"]).hex
