"""The store of the Claude Agent SDK against a real server: its contracts, and what the client for JavaScript stores."""

import asyncio
import json
import os
import shutil
import subprocess
import unittest
import uuid
from pathlib import Path

from ctxdir import Client
from ctxdir.claude import SessionStore

from .serve import LosesAnswers, Server

try:
    from claude_agent_sdk.testing import run_session_store_conformance
except ImportError:
    run_session_store_conformance = None

ROOT = Path(__file__).parents[3]
RECORDED = ROOT / "importer/testdata/claude-code/session.jsonl"
JAVASCRIPT = ROOT / "clients/claude-agent-sdk"


def entry(kind, **more):
    return {"type": kind, **more}


def agent(key, name):
    return {**key, "subpath": f"subagents/{name}"}


def fresh(**more):
    return {"project_key": str(uuid.uuid4()), "session_id": "session", **more}


class TestSessionStore(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.close)
        cls.client = Client(cls.server.url, cls.server.token)
        cls.store = SessionStore(cls.client)

    async def sessions(self, project_key):
        return sorted(s["session_id"] for s in await self.store.list_sessions(project_key))

    async def test_entries_come_back_equal_and_in_order(self):
        key, store = fresh(), self.store
        self.assertIsNone(await store.load(key))
        await store.append(key, [])
        self.assertIsNone(await store.load(key))
        entries = [entry("a", n=1, nested={"list": [1, None, "é\u2028\ud83d"]}), entry("b", empty={}), entry("a", n=2**60)]
        for part in (entries[:2], [], entries[2:]):
            await store.append(key, part)
        self.assertEqual(await store.load(key), entries)
        self.assertIsNone(await store.load(agent(key, "x")))
        self.assertIsNone(await store.load(fresh(session_id="session")))

    async def test_sessions_are_listed(self):
        key, store = fresh(), self.store
        await store.append(agent(key, "x"), [entry("of x")])
        self.assertEqual(await self.sessions(key["project_key"]), [])
        for name in ("session", "s2"):
            await store.append({**key, "session_id": name}, [entry("a")])
        await store.append(fresh(session_id="s3"), [entry("a")])
        self.assertEqual(await self.sessions(key["project_key"]), ["s2", "session"])
        for session in await store.list_sessions(key["project_key"]):
            self.assertIsInstance(session["mtime"], int)
            self.assertGreater(session["mtime"], 10**12)
        self.assertEqual(await store.list_sessions("never seen"), [])

    async def test_subpaths_are_apart_from_the_session(self):
        key, store = fresh(), self.store
        await store.append(key, [entry("main")])
        self.assertEqual(await store.list_subkeys(key), [])
        for name in ("a", "b"):
            await store.append(agent(key, name), [entry(name)])
        await store.append(agent({**key, "session_id": "other"}, "c"), [entry("c")])
        self.assertEqual(sorted(await store.list_subkeys(key)), ["subagents/a", "subagents/b"])
        await store.delete(agent(key, "a"))
        self.assertIsNone(await store.load(agent(key, "a")))
        self.assertEqual(await store.load(agent(key, "b")), [entry("b")])
        self.assertEqual(await store.load(key), [entry("main")])
        self.assertEqual(await store.list_subkeys(key), ["subagents/b"])
        self.client.ensure_branch(f"claude/{key['project_key']}/session", "subagents/empty")
        self.assertEqual(await store.list_subkeys(key), ["subagents/b"])
        self.assertEqual(await store.list_subkeys(fresh()), [])

    async def test_a_deleted_session_is_gone_and_nothing_else(self):
        key, store = fresh(), self.store
        others = [{**key, "session_id": "other"}, fresh()]
        for k in (key, agent(key, "a"), *others):
            await store.append(k, [entry("x")])
        for k in (key, fresh(), agent(fresh(), "a")):
            await store.delete(k)
        for k in (key, agent(key, "a")):
            self.assertIsNone(await store.load(k))
        for k in others:
            self.assertEqual(await store.load(k), [entry("x")])
        self.assertEqual(await self.sessions(key["project_key"]), ["other"])
        await store.append(key, [entry("again")])
        self.assertEqual(await store.load(key), [entry("again")])

    async def test_a_repetition_stores_nothing_twice_also_after_the_server_was_killed(self):
        key, store = fresh(), self.store
        entries = [entry("user", uuid=str(uuid.uuid4()), n=n) for n in range(50)]
        for n, part in enumerate([entries[:20], entries[10:40], entries]):
            for of in (key, agent(key, "a")):
                await store.append(of, part)
            if n == 1:
                self.server.kill()
        self.assertEqual(await store.load(key), entries)
        self.assertEqual(await store.load(agent(key, "a")), entries)
        others = [{**entries[3], "n": "another"}, entry("user", uuid="not a UUID")]
        for _ in range(2):
            await store.append(key, others)
        self.assertEqual((await store.load(key))[50:], others)

    async def test_a_lost_answer_stores_nothing_twice(self):
        key, store = agent(fresh(), "a"), SessionStore(LosesAnswers(self.server))
        for n in (0, 2):
            await store.append(key, [entry("user", n=n), entry("user", uuid=str(uuid.uuid4()), n=n + 1)])
        self.assertEqual([e["n"] for e in await self.store.load(key)], [0, 1, 2, 3])

    async def test_stores_that_append_at_once_lose_nothing(self):
        key = agent(fresh(), "a")

        async def append(store, i):
            for n in range(10):
                await store.append(key, [entry("user", i=i, n=n)])

        await asyncio.gather(*(append(SessionStore(self.client), i) for i in range(4)))
        stored = await self.store.load(key)
        for i in range(4):
            self.assertEqual([e["n"] for e in stored if e["i"] == i], list(range(10)))

    async def test_a_session_is_stored_as_the_client_for_javascript_stores_it(self):
        node = shutil.which("node")
        if not node or not (JAVASCRIPT / "node_modules").exists():
            self.skipTest(f"there is no node, or {JAVASCRIPT.relative_to(ROOT)} is not installed")
        recorded = [json.loads(line) for line in RECORDED.read_text().splitlines()]
        twice = [
            entry("user", uuid="odd", text="\x1f\x7f\u2028é\ud83d", message={"content": "  A 🚂 " + "🚋" * 150 + "\nThe rest"}),
            entry("user", uuid="odd", text="another\n\"", n=2**40),
        ]
        sessions = {
            "recorded": [("", recorded[:7]), ("", recorded[5:]), ("subagents/a b?", recorded)],
            "odd é!*'()/": [("", twice[:1]), ("", twice), ("", [entry("summary", summary="Of another", leafUuid=str(uuid.uuid4()))])],
            "titled": [("", recorded), ("", [entry("summary", summary="Tides", leafUuid=recorded[-1].get("uuid") or "")])],
            "moved": [("", [entry("user", cwd="/a")]), ("", [entry("user", cwd="/b", gitBranch="g"), entry("user", gitBranch="h")])],
            "named": [("", recorded), ("", [entry("ai-title", aiTitle="Made up"), entry("custom-title", customTitle="Named")])],
        }
        appends = [(session, *part) for session, parts in sessions.items() for part in parts]
        program = """
            import { CtxdirSessionStore } from "./index.js";
            const { url, token, appends } = JSON.parse(process.env.TOLD);
            const store = new CtxdirSessionStore({ url, token });
            for (const [sessionId, subpath, entries] of appends)
              await store.append({ projectKey: "javascript", sessionId, ...(subpath && { subpath }) }, entries);
            const keys = [...new Set(appends.map((append) => JSON.stringify(append.slice(0, 2))))].map((k) => JSON.parse(k));
            const loaded = keys.map(([sessionId, subpath]) => store.load({ projectKey: "python", sessionId, ...(subpath && { subpath }) }));
            console.log(JSON.stringify(await Promise.all(loaded)));
        """
        for session, subpath, entries in appends:
            await self.store.append({"project_key": "python", "session_id": session, "subpath": subpath or None}, entries)
        told = json.dumps({"url": self.server.url, "token": self.server.token, "appends": appends})
        command = [node, "--input-type=module", "--eval", program]
        environment = {**os.environ, "TOLD": told}
        ran = subprocess.run(command, cwd=JAVASCRIPT, env=environment, check=True, stdout=subprocess.PIPE, encoding="utf-8")

        keys = list(dict.fromkeys((session, subpath) for session, subpath, _ in appends))
        of_javascript = [
            await self.store.load({"project_key": "javascript", "session_id": session, "subpath": subpath}) for session, subpath in keys
        ]
        self.assertEqual(json.loads(ran.stdout), of_javascript)
        self.assertEqual(*[self.stored(project) for project in ("javascript", "python")])
        self.assertEqual(len(self.stored("python")), len(sessions))

    def stored(self, project):
        """Return what the store has of a project, without what each context has for itself: ids without uuid, and times."""
        contexts = []
        for found in self.client.contexts(label=[f"project_key={project}"], sort="created"):
            labels = {k: v for k, v in found["labels"].items() if k != "project_key"}
            branches = {}
            for branch in self.client.branches(found["id"]):
                branches[branch["name"]] = [
                    (m["position"], m["role"], m["type"], m["id"] if m["message"].get("uuid") else None,
                     self.client.body(found["id"], m["id"], branch["name"]))
                    for m in self.client.read(found["id"], branch["name"])
                ]
            contexts.append((found["external_id"].replace(project, ""), found["title"], labels, branches))
        return contexts

    @unittest.skipUnless(run_session_store_conformance, "the package claude-agent-sdk is not installed")
    async def test_the_contracts_of_the_sdk(self):
        async def fresh_store():
            for context in list(self.client.contexts()):
                self.client.remove(context["id"])
            return self.store

        await run_session_store_conformance(fresh_store)
