"""A server on a new store, for the tests. CTXTOOL names the command."""

import json
import logging
import os
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from ctxdir import Client

logging.getLogger("asyncio").setLevel(logging.ERROR)  # unittest lets it warn of everything that takes 0.1 s
TOOL = os.environ.get("CTXTOOL", "ctxtool")


class Server:
    """`url` and `token` are those of the server; `kill` ends it and starts another one at the same address."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="ctxdir-python-")
        self.folder = Path(self._folder.name)
        self.store, self._port = self.folder / "store", 0
        self.ctxtool("init")
        self._start()

    def ctxtool(self, *arguments):
        """Run the command on the store, and return the records that it prints."""
        command = [TOOL, "--json", "--store", self.store, *arguments]
        text = subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, encoding="utf-8").stdout
        return [json.loads(line) for line in text.splitlines()]

    def _start(self):
        self._process = subprocess.Popen(
            [TOOL, "--json", "--store", self.store, "serve", "--listen", f"127.0.0.1:{self._port}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, encoding="utf-8", env={**os.environ, "XDG_STATE_HOME": str(self.folder)},
        )
        url, _, self.token = json.loads(self._process.stdout.readline())["url"].partition("#token=")
        address = urlsplit(url)
        self.url, self._port = f"{address.scheme}://{address.netloc}", address.port

    def _stop(self):
        self._process.wait()
        self._process.stdout.close()

    def kill(self):
        self._process.kill()
        self._stop()
        self._start()

    def close(self):
        self._process.terminate()
        self._stop()
        self._folder.cleanup()


class LosesAnswers(Client):
    """A client that loses the first answer to each request that writes, and sends it again without a pause."""

    def __init__(self, server):
        super().__init__(server.url, server.token)
        self._lost, self._pause = set(), lambda _: None

    def _send(self, method, target, data, headers, raw):
        answer = super()._send(method, target, data, headers, raw)
        if method != "GET" and (target, data) not in self._lost:
            self._lost.add((target, data))
            raise ConnectionError("the answer is lost")
        return answer
