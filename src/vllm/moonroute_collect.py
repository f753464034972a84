# Asks every rank of one vLLM engine for its descriptor, holds the answers against each other, and prints the contract that they agree on: what
# `moonroute contract check` and a worker's `contract` in the router's configuration take. Over the server's development endpoint, or, with
# `collect_from`, from an LLM object of this process. Each rank knows the prefixes of all, so agreement is equality: one that differs means no contract.
#
#   python3 moonroute_collect.py http://127.0.0.1:8000 --world-size 2 > contract.json
"""Collects a vLLM engine's contract from all of its ranks."""

from __future__ import annotations

import argparse
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

from moonroute_worker import (
    ADAPTER,
    MAX_DESCRIPTOR_BYTES,
    MAX_REASON_CHARS,
    MAX_WORLD_SIZE,
    RPC_METHOD,
    SCHEMA_VERSION,
    VLLM_REVISION,
    canonical,
    is_whole,
    shown,
)

#: Longest time for the collective call, and for its answer to arrive.
TIMEOUT_SECONDS = 10.0
#: Room in an answer beside the descriptors, in bytes.
ENVELOPE_BYTES = 65_536
#: Longest part of a server's refusal that is repeated, in characters.
DETAIL_CHARS = 160

REPLY_FIELDS = {"rank", "dp_rank", "descriptor"}
DESCRIPTOR_FIELDS = {
    "schema_version",
    "adapter",
    "vllm_revision",
    "hash",
    "input",
    "main_event_group",
    "main_event_block_size",
    "gpu_to_store_group",
    "coordinator",
    "groups",
}


class CollectError(Exception):
    """Why there is no contract: a stable code, what was seen, and what to do."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{text} ({code})")
        self.code = code


def agree(
    replies: Any,
    *,
    world_size: int,
    dp_rank: int = 0,
    dp_size: int = 1,
    block_size: int | None = None,
) -> dict[str, Any]:
    """The descriptor that all ranks agree on. Each check goes over all replies before the next one does.

    `block_size`: tokens of a block that the router is configured for, where that is to be compared too.
    """
    refuse(
        dp_size != 1,
        "unsupported-dp-range",
        f"collective_rpc does not return all of {dp_size} internal DP engines: give each its own server",
    )
    in_range = is_whole(world_size) and 1 <= world_size <= MAX_WORLD_SIZE
    refuse(
        not in_range, "unsupported-world-size", f"the world size is {shown(world_size)}: give 1 to {MAX_WORLD_SIZE}"
    )
    complete = isinstance(replies, list) and len(replies) == world_size
    count = len(replies) if isinstance(replies, list) else shown(replies)
    refuse(
        not complete,
        "missing-replies",
        f"missing worker RPC replies: {count} of {world_size} ranks answered. "
        "Give the engine's world size (tensor times pipeline parallel size), and ask again",
    )
    for at, reply in enumerate(replies):
        refuse(
            not isinstance(reply, dict), "invalid-reply", f"invalid worker RPC reply: reply {at} is {shown(reply)}"
        )
    for at, reply in enumerate(replies):
        reason = str(reply.get("unsupported"))[:MAX_REASON_CHARS]
        refuse(
            "unsupported" in reply,
            "unsupported-worker",
            f"a worker did not validate the pinned contract: reply {at} is {reason}",
        )
    for at, reply in enumerate(replies):
        refuse(
            set(reply) != REPLY_FIELDS,
            "invalid-reply",
            f"invalid worker RPC envelope: reply {at} has the keys {shown(list(reply))}, of {sorted(REPLY_FIELDS)}",
        )
    seen: set[int] = set()
    for reply in replies:
        rank = reply["rank"]
        good = is_whole(rank) and 0 <= rank < world_size and rank not in seen
        good = good and is_whole(reply["dp_rank"]) and reply["dp_rank"] == dp_rank
        refuse(
            not good,
            "unexpected-rank",
            f"duplicate or unexpected worker rank: rank {shown(rank)} of {world_size}, "
            f"data-parallel {shown(reply['dp_rank'])} where {dp_rank} was asked for",
        )
        seen.add(rank)
    texts = [text_of(reply, block_size) for reply in replies]
    for reply, text in zip(replies, texts):
        refuse(
            text != texts[0],
            "ranks-disagree",
            f"workers disagree on the resolved store contract: rank {reply['rank']} has another than rank "
            f"{replies[0]['rank']}. Start all ranks alike",
        )
    return json.loads(texts[0])


def text_of(reply: dict[str, Any], block_size: int | None) -> str:
    """The canonical text of a rank's descriptor, which is sent as a value or as that text."""
    rank, sent = reply["rank"], reply["descriptor"]
    descriptor = sent
    if isinstance(sent, str):
        try:
            descriptor = json.loads(sent)
        except (ValueError, RecursionError):
            raise CollectError("descriptor-not-canonical", f"rank {rank} sent a descriptor that is no JSON") from None
    fields = descriptor if isinstance(descriptor, dict) else {}
    known = (
        set(fields) == DESCRIPTOR_FIELDS
        and is_whole(fields["schema_version"])
        and fields["schema_version"] == SCHEMA_VERSION
        and fields["adapter"] == ADAPTER
        and fields["vllm_revision"] == VLLM_REVISION
        and (block_size is None or fields["main_event_block_size"] == block_size)
    )
    refuse(
        not known,
        "metadata-disagrees",
        f"worker metadata disagrees with registered main-event span or schema: rank {rank} has adapter "
        f"{shown(fields.get('adapter'))}, schema {shown(fields.get('schema_version'))}, main event blocks of "
        f"{shown(fields.get('main_event_block_size'))} tokens",
    )
    try:
        text = canonical(descriptor)
    except (ValueError, RecursionError):
        raise CollectError("descriptor-not-canonical", f"rank {rank} sent what canonical JSON can not say") from None
    refuse(
        len(text.encode()) > MAX_DESCRIPTOR_BYTES,
        "descriptor-too-large",
        f"rank {rank} sent more than {MAX_DESCRIPTOR_BYTES} bytes",
    )
    refuse(
        isinstance(sent, str) and sent != text,
        "descriptor-not-canonical",
        f"rank {rank} sent its descriptor with other spaces or another order of keys than canonical JSON has",
    )
    return text


def collect_from(llm: Any, *, block_size: int | None = None) -> dict[str, Any]:
    """The contract of a `vllm.LLM` in this process."""
    parallel = llm.llm_engine.vllm_config.parallel_config
    replies = llm.collective_rpc(RPC_METHOD, timeout=TIMEOUT_SECONDS)
    return agree(
        replies,
        world_size=parallel.world_size,
        dp_rank=parallel.data_parallel_index,
        dp_size=parallel.data_parallel_size,
        block_size=block_size,
    )


def replies_over_http(url: str, *, world_size: int, api_key: str | None = None) -> Any:
    """Every rank's reply, over POST /collective_rpc of vLLM's development endpoints."""
    place = f"{url.rstrip('/')}/collective_rpc"
    headers = {"content-type": "application/json"}
    if api_key is not None:
        headers["authorization"] = f"Bearer {api_key}"
    body = json.dumps({"method": RPC_METHOD, "timeout": TIMEOUT_SECONDS}).encode()
    request = urllib.request.Request(place, data=body, headers=headers, method="POST")
    most = world_size * MAX_DESCRIPTOR_BYTES + ENVELOPE_BYTES
    try:
        with urllib.request.build_opener(NoRedirects).open(request, timeout=TIMEOUT_SECONDS) as answer:
            content = answer.read(most + 1)
    except urllib.error.HTTPError as error:
        raise http_refusal(place, error) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise CollectError("unreachable", f"{place} does not answer ({reason}): is it the server's address?") from None
    refuse(len(content) > most, "answer-too-large", f"{place} answers with more than {most} bytes")
    try:
        return json.loads(content)["results"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise CollectError("answer", f"{place} answers without results: is it a vLLM server?") from None


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A key is for the server that was named."""

    def redirect_request(self, *_: Any) -> None:
        return None


def http_refusal(place: str, error: urllib.error.HTTPError) -> CollectError:
    """What to do about a status."""
    if error.code == 404:
        return CollectError(
            "no-endpoint",
            f"{place} is not there: start vLLM with VLLM_SERVER_DEV_MODE=1, at an address that only administrators "
            "reach, for these endpoints control the engine",
        )
    if error.code in (401, 403):
        return CollectError(
            "http-key", f"{place} answers {error.code}: name the variable that holds a key in --api-key-env"
        )
    detail = error.read(4 * DETAIL_CHARS).decode(errors="replace")[:DETAIL_CHARS].strip()
    return CollectError(
        "http-status",
        f"{place} answers {error.code} {detail}: was vLLM started with "
        "--worker-extension-cls moonroute_worker.MoonrouteWorker?",
    )


def refuse(holds: bool, code: str, text: str) -> None:
    """Ends in `CollectError` where the condition holds."""
    if holds:
        raise CollectError(code, text)


def options() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="moonroute_collect.py",
        description="Ask all ranks of a vLLM engine for their contract, and print the one that they agree on as JSON.",
        epilog="The server needs VLLM_SERVER_DEV_MODE=1 and --worker-extension-cls moonroute_worker.MoonrouteWorker. "
        "Exit code 0 with a contract, 1 without one (the reason is on stderr), 2 for a wrong option. "
        "Example: python3 moonroute_collect.py http://127.0.0.1:8000 --world-size 2 > contract.json",
    )
    parser.add_argument("url", help="the server, as http://HOST:PORT")
    parser.add_argument("--world-size", type=int, required=True, help="its ranks: tensor times pipeline parallel size")
    parser.add_argument("--dp-rank", type=int, default=0, help="its data-parallel rank (default 0)")
    parser.add_argument("--block-size", type=int, help="blockSize of the router, to be compared")
    parser.add_argument("--api-key-env", metavar="NAME", help="environment variable that holds a key for the server")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; its exit code."""
    parser = options()
    given = parser.parse_args(arguments)
    if not given.url.startswith(("http://", "https://")):
        parser.error(f"the url is {given.url!r}; give http://HOST:PORT")
    if not 1 <= given.world_size <= MAX_WORLD_SIZE:
        parser.error(f"--world-size is {given.world_size}; give 1 to {MAX_WORLD_SIZE}")
    api_key = None
    if given.api_key_env is not None:
        api_key = os.environ.get(given.api_key_env)
        if not api_key:
            parser.error(f"--api-key-env names {given.api_key_env}, which is not set")
    try:
        replies = replies_over_http(given.url, world_size=given.world_size, api_key=api_key)
        contract = agree(replies, world_size=given.world_size, dp_rank=given.dp_rank, block_size=given.block_size)
    except CollectError as error:
        print(f"moonroute_collect: {error}", file=sys.stderr)
        return 1
    print(canonical(contract))
    return 0


if __name__ == "__main__":
    sys.exit(main())
