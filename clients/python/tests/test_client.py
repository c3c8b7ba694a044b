"""The client against a real server, and against one that loses answers."""

import http.server
import json
import pickle
import threading
import unittest
import uuid

from ctxdir import Client, Problem

from .serve import Server


class TestClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.close)
        cls.client = Client(cls.server.url, cls.server.token)

    def positions(self, appended):
        return [(line["position"], line.get("existed", False)) for line in appended]

    def test_contexts(self):
        made = self.client.create(title="A walk", labels={"user": "ada"})
        opened = self.client.open("session 7/é", title="Another", labels={"user": "ada"})
        self.assertEqual(self.client.open("session 7/é")["id"], opened["id"])
        self.assertEqual(self.client.context("session 7/é")["title"], "Another")
        listed = list(self.client.contexts(label=["user=ada"], sort="created"))
        self.assertEqual({c["id"] for c in listed}, {made["id"], opened["id"]})
        self.assertEqual(len(list(self.client.contexts(1, label=["user=ada"]))), 1)
        changed = self.client.change(made["id"], sequence=made["sequence"], title="A long walk", state={"step": 1})
        self.assertEqual((changed["title"], changed["state"]), ("A long walk", {"step": 1}))
        with self.assertRaises(Problem) as caught:
            self.client.change(made["id"], sequence=made["sequence"], title="Late")
        self.assertEqual((caught.exception.code, caught.exception.status), ("precondition", 412))
        self.client.remove(made["id"])
        with self.assertRaises(Problem) as caught:
            self.client.context(made["id"])
        self.assertEqual(caught.exception.code, "not_found")
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((again.code, again.status, str(again)), ("not_found", 404, str(caught.exception)))

    def test_messages(self):
        context = self.client.create()["id"]
        said = [{"role": "user", "content": f"Café {n} " + "…" * n, "n": 2**60 + n} for n in range(300)]
        self.assertEqual(self.positions(self.client.append(context, said)), [(n, False) for n in range(300)])
        self.assertEqual([m["message"] for m in self.client.read(context)], said)
        self.assertEqual([m["position"] for m in self.client.read(context, start=5, end=8)], [5, 6, 7])
        self.assertEqual([m["position"] for m in self.client.read(context, last=2)], [298, 299])
        self.assertEqual(list(self.client.read(context, start=300)), [])
        [sizes] = self.client.read(context, last=1, content="none")
        self.assertNotIn("message", sizes)
        self.assertEqual(self.client.body(context, sizes["id"]), json.dumps(said[-1], ensure_ascii=False, separators=(",", ":")).encode())
        [odd] = self.client.append(context, [{"text": "half of a pair: \ud83d"}])
        self.assertIn(b"\\ud83d", self.client.body(context, odd["id"]))
        with self.assertRaises(ValueError):
            self.client.append(context, [{"n": float("nan")}])

    def test_an_append_is_repeated_with_the_same_id(self):
        context = self.client.create()["id"]
        first, ids = [{"n": 0}, {"n": 1}], [str(uuid.uuid4()) for _ in range(2)]
        for existed in (False, True):
            self.assertEqual(self.positions(self.client.append(context, first, ids=ids, position=0)), [(0, existed), (1, existed)])
        self.server.kill()
        for existed in (False, True):
            self.assertEqual(self.positions(self.client.append(context, [{"n": 2}], key="one")), [(2, existed)])
        self.client.append(context, [{"n": 2}])
        with self.assertRaises(Problem) as caught:
            self.client.append(context, [{"n": 9}], position=3)
        self.assertEqual(caught.exception.code, "position")
        with self.assertRaises(Problem) as caught:
            self.client.append(context, [{"n": 9}], ids=ids[:1])
        self.assertEqual(caught.exception.code, "conflict")
        with self.assertRaises(ValueError):
            self.client.append(context, first, ids=ids[:1])
        self.assertEqual([m["message"]["n"] for m in self.client.read(context)], [0, 1, 2, 2])

    def test_branches(self):
        context = self.client.create()["id"]
        self.client.append(context, [{"n": n} for n in range(5)])
        odd = "a/b ?#%"
        for _ in range(2):
            self.assertEqual(self.client.fork(context, odd, "main", at=3, key="one")["messages"], 3)
        self.client.append(context, [{"n": 30}], odd, position=3)
        self.assertEqual([m["message"]["n"] for m in self.client.read(context, odd)], [0, 1, 2, 30])
        self.assertEqual(self.client.rewind(context, 1, odd)["messages"], 1)
        for _ in range(2):
            self.client.ensure_branch(context, "empty")
        self.assertEqual([b["name"] for b in self.client.branches(context)], ["main", odd, "empty"])
        done = self.client.commit(context, [{"op": "rewind", "to": 2}, {"op": "append", "messages": [{"message": {"n": 20}}]}])
        self.assertEqual([a["position"] for a in done["appended"]], [2])
        with self.assertRaises(Problem) as caught:
            self.client.rewind(context, 0, sequence=1)
        self.assertEqual(caught.exception.code, "precondition")

    def test_search_and_assembly(self):
        context = self.client.create(title="Coast")["id"]
        self.client.append(context, [{"role": "user", "content": f"Lighthouse number {n}"} for n in range(5)])
        self.assertEqual([h["context"] for h in self.client.search("lighthouse", 3)], [context] * 3)
        self.assertEqual(len(list(self.client.search("lighthouse", context=[context]))), 5)
        assembled = self.client.assemble(context=context, query="lighthouse", max_tokens=400)
        self.assertIn("Lighthouse", assembled["text"])

    def test_reading_goes_on_after_the_server_was_killed(self):
        context = self.client.create()["id"]
        self.client.append(context, [{"n": n, "text": "long " * 500} for n in range(400)])
        everything, newest = self.client.read(context, end=400), self.client.read(context, last=300)
        seen, last = [next(everything)], [next(newest)]
        self.server.kill()
        self.client.append(context, [{"n": 400}])
        self.assertEqual([m["message"]["n"] for m in seen + list(everything)], list(range(400)))
        self.assertEqual([m["message"]["n"] for m in last + list(newest)], list(range(100, 400)))

    def test_another_token_and_no_server(self):
        with self.assertRaises(Problem) as caught:
            Client(self.server.url, "no").request("GET", "/v1/store")
        self.assertEqual((caught.exception.code, caught.exception.status), ("unauthorized", 401))
        with self.assertRaises(ValueError):
            Client("127.0.0.1:7433", "no")


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers with what the test says, in order: bytes of an answer, which ends the connection."""

    def respond(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append((self.command, self.path, self.headers.get("Idempotency-Key")))
        self.wfile.write(self.server.answers.pop(0))
        self.close_connection = True

    do_GET = do_POST = do_DELETE = do_PATCH = respond

    def log_message(self, *_):
        pass


def answer(status, body, media="application/json", length=None):
    text = body.encode()
    return f"HTTP/1.1 {status} Text\r\nContent-Type: {media}\r\nContent-Length: {length or len(text)}\r\n\r\n".encode() + text


PROBLEM = "application/problem+json"
BUSY = answer(503, '{"status":503,"code":"locked","title":"Locked","detail":""}', PROBLEM)


class TestLostAnswers(unittest.TestCase):
    def setUp(self):
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.http.seen, self.http.answers = [], []
        thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))
        thread.start()
        self.addCleanup(lambda: (self.http.shutdown(), thread.join(), self.http.server_close()))
        self.client, self.pauses = Client(f"http://127.0.0.1:{self.http.server_port}", "t", attempts=3), []
        self.client._pause = self.pauses.append

    def test_only_safe_requests_are_repeated(self):
        lost, whole = b"", answer(200, '{"id":"c"}')
        self.http.answers = [lost, BUSY, whole]
        self.assertEqual(self.client.create(), {"id": "c"})
        keys = {key for _, _, key in self.http.seen}
        self.assertEqual((len(self.http.seen), len(keys), self.pauses), (3, 1, [0.2, 0.4]))
        self.http.answers = [answer(201, '{"position":0', "application/x-ndjson", 99), answer(200, "{}", length=99)]
        for change in (lambda: self.client.remove("c"), lambda: self.client.rewind("c", 1), lambda: self.client.change("c", title="t")):
            self.http.seen, self.http.answers = [], [lost]
            with self.assertRaises(OSError):
                change()
            self.assertEqual(len(self.http.seen), 1)
        self.http.seen, self.http.answers = [], [answer(400, '{"status":400,"code":"invalid"}', PROBLEM)]
        with self.assertRaises(Problem):
            self.client.context("c")
        self.http.answers = [BUSY] * 3
        with self.assertRaises(Problem) as caught:
            self.client.context("c")
        self.assertEqual((caught.exception.code, len(self.http.seen)), ("locked", 4))

    def test_reading_goes_on_after_the_last_message(self):
        def lines(first, last, length=None):
            return answer(200, "".join(f'{{"position":{n}}}\n' for n in range(first, last)), "application/x-ndjson", length)

        wanted = {
            (("last", 5),): ["last=5", "last=5", "from=7&to=10", "from=9&to=10"],
            (("start", 5),): ["from=5", "from=5", "from=7", "from=9"],
            (("start", 5), ("end", 10)): ["from=5&to=10", "from=5&to=10", "from=7&to=10", "from=9&to=10"],
        }
        for conditions, queries in wanted.items():
            self.http.seen, self.http.answers = [], [lines(5, 5, 99), lines(5, 7, 99), lines(7, 9, 99), lines(9, 10)]
            self.assertEqual([m["position"] for m in self.client.read("c", **dict(conditions))], [5, 6, 7, 8, 9])
            self.assertEqual([path.partition("?")[2] for _, path, _ in self.http.seen], queries)
        self.http.answers = [lines(0, 1, 99)] + [lines(1, 1, 99)] * 3
        with self.assertRaises(OSError):
            list(self.client.read("c"))

    def test_answers_that_end_early_or_are_none(self):
        ndjson = "application/x-ndjson"
        for cut in (answer(200, '{"id"', length=99), answer(200, "", length=9), b"HTTP/1.1 2"):
            self.http.answers = [cut] * 3
            with self.assertRaises(OSError):
                self.client.context("c")
        for cut in (answer(200, '{"n":1}', ndjson), answer(200, '{"n":1}\n', ndjson, 99)):
            self.http.answers = [cut]
            with self.assertRaises(OSError):
                list(self.client.request("GET", "/x"))
        for status in (301, 502):
            self.http.answers = [answer(status, "<html>", "text/html")]
            with self.assertRaises(Problem) as caught:
                self.client.context("c")
            self.assertEqual((caught.exception.code, caught.exception.status), ("internal", status))
