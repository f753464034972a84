# Runs the Python tests and prints one JSON document: each test with what went wrong, and the answers of engines of every supported kind, for the tests in
# TypeScript to report and to validate.
from __future__ import annotations

import json
import sys
import unittest
from typing import Any

import test_collect
import test_worker
from engine import FULL, MAMBA, WINDOW, pool


class Outcomes(unittest.TestResult):
    """Keeps what became of each test."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: list[dict[str, Any]] = []

    def note(self, test: unittest.TestCase, error: str | None) -> None:
        self.outcomes.append({"name": test.id().split(".", 1)[-1], "error": error})

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.note(test, None)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self.note(test, self._exc_info_to_string(err, test))

    addError = addFailure


#: Engines by name, as all of their ranks answer.
KINDS: dict[str, list[dict[str, Any]]] = {
    "full attention": pool(),
    "full attention over 4 tensor and 2 pipeline ranks": pool(tp=4, pp=2, kv_heads=2),
    "one KV head over 8 tensor ranks": pool(tp=8, kv_heads=1),
    "windows beside full attention": pool([WINDOW(sliding_window=128), FULL()], tp=2),
    "a coarse window that fits one block": pool([FULL(), WINDOW(32, sliding_window=32)]),
    "mamba beside full attention": pool([MAMBA(), MAMBA(), FULL()], tp=2, kv_heads=1),
    "partial hits": pool([FULL(32), MAMBA(32)], hash_block_size=16),
    "a scratch group first": pool([MAMBA(), FULL(), WINDOW(), MAMBA()], scratch=(0,)),
    "letters of other scripts": pool(cache_prefix="Köln-月"),
    "windows alone": pool([WINDOW()]),
}


def main() -> None:
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromModule(m) for m in (test_worker, test_collect))
    outcomes = Outcomes()
    suite.run(outcomes)
    json.dump({"python": sys.version.split()[0], "tests": outcomes.outcomes, "kinds": KINDS}, sys.stdout)


main()
