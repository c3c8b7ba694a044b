"""The example of the README, against a real server."""

import contextlib
import io
import re
import unittest
from pathlib import Path

from .serve import Server


class TestReadme(unittest.TestCase):
    def test_the_example_prints_what_it_says(self):
        server = Server()
        self.addCleanup(server.close)
        readme = Path(__file__).parent.with_name("README.md").read_text(encoding="utf-8")
        [example] = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
        [printed] = re.findall(r"```text\n(.*?)```", readme, re.DOTALL)
        self.assertIn("http://127.0.0.1:7433", example)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(example.replace("http://127.0.0.1:7433", server.url), {"TOKEN": server.token})
        self.assertEqual(out.getvalue(), printed)
