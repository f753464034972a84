# The collecting client: what ranks answer, held against each other; and the server that it asks, stood in for by Python's own.
from __future__ import annotations

import contextlib
import io
import json
import os
import threading
import unittest
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any
from unittest import mock

from engine import MAMBA, WINDOW, FULL, pool

import moonroute_collect
from moonroute_collect import CollectError, agree, collect_from, main

REPLIES = pool([FULL(), WINDOW(), MAMBA()], tp=2, pp=2)


def copied() -> list[dict[str, Any]]:
    return json.loads(json.dumps(REPLIES))


def descriptor_with(**fields: Any) -> Callable[[list[Any]], None]:
    return lambda replies: replies[2]["descriptor"].update(fields)


def reply_with(**fields: Any) -> Callable[[list[Any]], None]:
    return lambda replies: replies[2].update(fields)


def replaced(value: Any) -> Callable[[list[Any]], None]:
    def act(replies: list[Any]) -> None:
        replies[2] = value

    return act


#: What one rank answers otherwise, the code, and what the text says.
DISAGREEMENTS: list[tuple[str, Callable[[list[Any]], object], str, str]] = [
    ("a reply is missing", lambda replies: replies.pop(), "missing-replies", "3 of 4 ranks"),
    ("a reply too many", lambda replies: replies.append(replies[0]), "missing-replies", "5 of 4 ranks"),
    ("a reply is null", replaced(None), "invalid-reply", "reply 2 is None"),
    ("a reply is text", replaced("{}"), "invalid-reply", "reply 2 is '{}'"),
    ("a rank has no contract", replaced({"unsupported": "hash-seed: 9"}), "unsupported-worker", "hash-seed: 9"),
    ("a field too many", reply_with(more=1), "invalid-reply", "'more'"),
    ("a field is missing", lambda replies: replies[2].pop("dp_rank"), "invalid-reply", "reply 2 has the keys"),
    ("a rank twice", reply_with(rank=1), "unexpected-rank", "rank 1 of 4"),
    ("a rank past the last", reply_with(rank=4), "unexpected-rank", "rank 4 of 4"),
    ("a rank that is no number", reply_with(rank=True), "unexpected-rank", "rank True"),
    ("another data-parallel rank", reply_with(dp_rank=1), "unexpected-rank", "data-parallel 1 where 0"),
    ("a descriptor that is null", reply_with(descriptor=None), "metadata-disagrees", "rank 2"),
    ("a descriptor with a field too many", descriptor_with(more=1), "metadata-disagrees", "rank 2"),
    ("another schema", descriptor_with(schema_version=2), "metadata-disagrees", "schema 2"),
    ("another adapter", descriptor_with(adapter="vllm-d56bbf39"), "metadata-disagrees", "'vllm-d56bbf39'"),
    ("another revision", descriptor_with(vllm_revision="d56bbf39"), "metadata-disagrees", "rank 2"),
    ("another geometry", descriptor_with(main_event_group=1), "ranks-disagree", "rank 2 has another than rank 0"),
    ("a number that is none", descriptor_with(main_event_group=float("nan")), "descriptor-not-canonical", "rank 2"),
    ("a text that is no JSON", reply_with(descriptor="{"), "descriptor-not-canonical", "no JSON"),
    (
        "a text with spaces",
        lambda replies: replies[2].update(descriptor=json.dumps(replies[2]["descriptor"])),
        "descriptor-not-canonical",
        "spaces",
    ),
    ("too long a descriptor", descriptor_with(groups="x" * 262_144), "descriptor-too-large", "262144 bytes"),
]


class Agreement(unittest.TestCase):
    def refusal(self, replies: Any, **options: Any) -> CollectError:
        with self.assertRaises(CollectError) as caught:
            agree(replies, **{"world_size": 4, **options})
        return caught.exception

    def test_ranks_in_any_order_agree(self) -> None:
        contract = agree(copied()[::-1], world_size=4, block_size=16)
        self.assertEqual(contract, REPLIES[0]["descriptor"])

    def test_descriptors_as_canonical_texts_agree_with_values(self) -> None:
        replies = copied()
        replies[1]["descriptor"] = moonroute_collect.canonical(replies[1]["descriptor"])
        self.assertEqual(agree(replies, world_size=4), REPLIES[0]["descriptor"])

    def test_what_is_asked_for_is_checked_first(self) -> None:
        self.assertEqual(self.refusal(copied(), dp_size=2).code, "unsupported-dp-range")
        for world_size in (0, 1025, True, None):
            self.assertEqual(self.refusal(copied(), world_size=world_size).code, "unsupported-world-size")
        self.assertEqual(self.refusal(None).code, "missing-replies")
        self.assertEqual(self.refusal(copied(), block_size=32).code, "metadata-disagrees")
        self.assertEqual(self.refusal(copied(), dp_rank=1).code, "unexpected-rank")

    def test_an_llm_of_this_process_is_asked(self) -> None:
        asked: list[Any] = []

        def collective_rpc(method: str, timeout: float) -> list[Any]:
            asked.append((method, timeout))
            return copied()

        parallel = SimpleNamespace(world_size=4, data_parallel_index=0, data_parallel_size=1)
        config = SimpleNamespace(parallel_config=parallel)
        llm = SimpleNamespace(llm_engine=SimpleNamespace(vllm_config=config), collective_rpc=collective_rpc)
        self.assertEqual(collect_from(llm), REPLIES[0]["descriptor"])
        self.assertEqual(asked, [("dynamo_mooncake_store_descriptor", 10.0)])


def disagreement(change: Callable[[list[Any]], object], code: str, words: str) -> Callable[[Agreement], None]:
    def test(self: Agreement) -> None:
        replies = copied()
        change(replies)
        error = self.refusal(replies)
        self.assertEqual(error.code, code, error)
        self.assertIn(words, str(error))

    return test


for name, change, code, words in DISAGREEMENTS:
    setattr(Agreement, f"test {name}", disagreement(change, code, words))


@contextlib.contextmanager
def server(status: int, body: bytes, headers: dict[str, str] | None = None) -> Iterator[tuple[str, list[Any]]]:
    """A server that answers everything alike, and what it was asked."""
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            asked.append((self.path, self.headers.get("authorization"), json.loads(self.rfile.read(length))))
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(body)

        def do_GET(self) -> None:
            asked.append(("GET", self.path))

        def log_message(self, *_: Any) -> None:
            pass

    http = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}", asked
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def run(*arguments: str) -> tuple[int | str | None, str, str]:
    """The command: exit code, standard output, standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as end:
            code = end.code
    return code, out.getvalue(), err.getvalue()


class Command(unittest.TestCase):
    def answer(self, status: int, body: Any, *arguments: str, **more: Any) -> tuple[Any, str, str, list[Any]]:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        with server(status, content, **more) as (url, asked):
            return *run(url, "--world-size", "4", *arguments), asked

    def test_prints_the_contract(self) -> None:
        code, out, err, asked = self.answer(200, {"results": REPLIES})
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(json.loads(out), REPLIES[0]["descriptor"])
        body = {"method": "dynamo_mooncake_store_descriptor", "timeout": 10.0}
        self.assertEqual(asked, [("/collective_rpc", None, body)])

    def test_a_key_comes_from_the_environment(self) -> None:
        with mock.patch.dict(os.environ, {"ENGINE_KEY": "secret"}):
            _, _, _, asked = self.answer(200, {"results": REPLIES}, "--api-key-env", "ENGINE_KEY")
        self.assertEqual(asked[0][1], "Bearer secret")

    def test_what_can_go_wrong_is_said_with_what_to_do(self) -> None:
        for status, body, words in (
            (404, b"", "VLLM_SERVER_DEV_MODE=1"),
            (401, b"", "--api-key-env"),
            (500, b"no such method", "500 no such method: was vLLM started with --worker-extension-cls"),
            (200, b"", "answers without results"),
            (200, b"[]", "answers without results"),
            (200, {"results": REPLIES[:3]}, "3 of 4 ranks answered"),
            (200, b"x" * (4 * 262_144 + 65_537), "more than"),
        ):
            code, out, err, _ = self.answer(status, body)
            self.assertEqual((code, out), (1, ""), words)
            self.assertIn(words, err)
            self.assertTrue(err.startswith("moonroute_collect: "))

    def test_a_redirect_is_not_followed(self) -> None:
        with server(200, b"{}") as (other, asked):
            code, _, err, _ = self.answer(302, b"", headers={"location": other})
            self.assertEqual((code, asked), (1, []))
            self.assertIn("answers 302", err)

    def test_nobody_there(self) -> None:
        code, _, err = run("http://127.0.0.1:9", "--world-size", "1")
        self.assertEqual(code, 1)
        self.assertIn("does not answer", err)

    def test_wrong_options_end_with_2(self) -> None:
        for arguments, words in (
            ((), "required"),
            (("http://h:1",), "--world-size"),
            (("h:1", "--world-size", "1"), "http://HOST:PORT"),
            (("http://h:1", "--world-size", "1025"), "1 to 1024"),
            (("http://h:1", "--world-size", "1", "--api-key-env", "NOT_SET_ANYWHERE"), "not set"),
        ):
            code, _, err = run(*arguments)
            self.assertEqual(code, 2)
            self.assertIn(words, err)

    def test_help_says_what_the_server_needs(self) -> None:
        code, out, _ = run("--help")
        self.assertEqual(code, 0)
        self.assertIn("VLLM_SERVER_DEV_MODE=1", out)
        self.assertIn("Example: ", out)
