"""The sessions of the OpenAI Agents SDK against a real server, and beside its Conversations API."""

import asyncio
import unittest
import uuid

from ctxdir import Client, Problem
from ctxdir.openai_agents import Session

from .serve import LosesAnswers, Server

try:
    import agents
except ImportError:
    agents = None

CALL = {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"n": 1.50}'}


def said(n):
    return {"role": "user", "content": f"message {n}"}


class TestSession(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.close)
        cls.client = Client(cls.server.url, cls.server.token)

    def conversation(self, method, path, **request):
        return self.client.request(method, "/v1/conversations" + path, **request)

    async def test_items_are_listed_popped_and_cleared(self):
        session = Session(self.client, "ada")
        self.assertEqual(await session.get_items(), [])
        self.assertIsNone(await session.pop_item())
        await session.add_items([])
        items = [CALL] + [said(n) for n in range(250)]
        await session.add_items(items[:100])
        await session.add_items(items[100:])
        self.assertEqual(await session.get_items(), items)
        self.assertEqual(await session.get_items(3), items[-3:])
        self.assertEqual([await session.get_items(n) for n in (0, -1)], [[], []])
        self.assertEqual(await session.get_items(1000), items)
        self.assertEqual(await session.pop_item(), items[-1])
        self.assertEqual(await session.get_items(2), items[-3:-1])
        self.assertEqual(await Session(self.client, "eve").get_items(), [])
        await session.clear_session()
        self.assertEqual(await session.get_items(), [])
        await session.add_items([said(0)])
        self.assertEqual(await session.get_items(), [said(0)])

    async def test_items_that_were_removed_can_be_added_again(self):
        session, other = Session(self.client), {**CALL, "name": "another"}
        await session.add_items([said(0), CALL])
        self.assertEqual(await session.pop_item(), CALL)
        await session.add_items([CALL])
        self.assertEqual(await session.get_items(), [said(0), CALL])
        await session.clear_session()
        await session.add_items([other])
        self.assertEqual(await session.get_items(), [other])

    async def test_a_session_goes_on_after_the_server_was_killed(self):
        session = Session(self.client)
        await session.add_items([said(0)])
        self.assertRegex(session.session_id, "^conv_[0-9a-f]{32}$")
        self.server.kill()
        await session.add_items([said(1)])
        again = Session(self.client, session.session_id)
        self.assertEqual(await again.get_items(), [said(0), said(1)])

    async def test_a_lost_answer_stores_nothing_twice(self):
        session = Session(LosesAnswers(self.server), "lost")
        await session.add_items([said(0), CALL, said(2)])
        self.assertEqual(await session.get_items(), [said(0), CALL, said(2)])
        with self.assertRaises(ConnectionError):
            await session.pop_item()
        self.assertEqual(await session.get_items(), [said(0), CALL])

    async def test_the_conversations_api_shares_sessions(self):
        conversation = self.conversation("POST", "", body={"items": [said(0), CALL]})["id"]
        session = Session(self.client, conversation)
        await session.add_items([said(2), {**CALL, "id": "fc_2"}, said(4)])
        await session.add_items([CALL])  # it is there already
        shown = self.conversation("GET", f"/{conversation}/items", query={"order": "asc"})["data"]
        self.assertEqual([i.get("name") or i["content"][0]["text"] for i in shown], ["message 0", "look", "message 2", "look", "message 4"])
        self.assertEqual([i["id"] for i in shown if "name" in i], ["fc_1", "fc_2"])
        self.assertEqual(await session.get_items(), [said(0), CALL, said(2), {**CALL, "id": "fc_2"}, said(4)])
        self.conversation("DELETE", f"/{conversation}/items/{shown[2]['id']}")  # in the middle: it is erased
        self.conversation("DELETE", f"/{conversation}/items/fc_2")
        self.assertEqual(await session.get_items(), [said(0), CALL, said(4)])
        self.assertEqual(await session.get_items(2), [CALL, said(4)])
        self.assertEqual([await session.pop_item() for _ in range(4)], [said(4), CALL, said(0), None])
        self.assertEqual(self.conversation("GET", f"/{conversation}/items")["data"], [])
        self.conversation("DELETE", f"/{conversation}")
        with self.assertRaises(Problem) as caught:
            await session.get_items()
        self.assertEqual(caught.exception.code, "not_found")

    async def test_items_are_stored_as_the_conversations_api_stores_them(self):
        def stored(context):
            return [{k: v for k, v in m.items() if k not in ("id", "created_at")} for m in self.client.read(context)]

        items = [said(0), CALL, {"role": "assistant", "content": [{"type": "output_text", "text": "é"}]}]
        theirs = self.conversation("POST", "", body={"items": items})["id"]
        ours = Session(self.client)
        await ours.add_items(items)
        contexts = [str(uuid.UUID(name[5:])) for name in (theirs, ours.session_id)]
        self.assertEqual(*map(stored, contexts))
        for context in contexts:  # the id of an item is that of its message
            [call] = self.client.read(context, start=1, end=2)
            self.assertEqual(call["id"], str(uuid.uuid5(uuid.UUID(context), "fc_1")))

    async def test_sessions_that_are_used_at_once_lose_nothing(self):
        session, others = Session(self.client), [Session(self.client, "together") for _ in range(4)]
        await asyncio.gather(*(session.add_items([said(n)]) for n in range(8)))
        self.assertEqual(sorted(i["content"] for i in await session.get_items()), sorted(said(n)["content"] for n in range(8)))
        await asyncio.gather(*(s.add_items([said(n)]) for n in range(5) for s in others))
        popped = await asyncio.gather(*(s.pop_item() for _ in range(6) for s in others))
        self.assertEqual(len([i for i in popped if i]), 20)
        self.assertEqual(await others[0].get_items(), [])

    async def test_settings_limit_items(self):
        session = Session(self.client)
        session.session_settings = type("Settings", (), {"limit": 1})
        await session.add_items([said(0), said(1)])
        self.assertEqual(await session.get_items(), [said(1)])

    @unittest.skipUnless(agents, "the package openai-agents is not installed")
    async def test_the_sdk_takes_it_for_a_session(self):
        from agents.memory import Session as Protocol

        self.assertIsInstance(Session(self.client), Protocol)
