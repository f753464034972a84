# The worker extension of vLLM that tells a router how this engine keeps its KV cache in a Mooncake store: one named RPC, answered by every rank from
# the live objects of its process. A router credits what a shared store holds only under such a contract, so nothing is taken for granted here: the
# build, the input, the hashes, the connector and its geometry are each looked at, and the first that is not as it must be is the answer, by its code.
# Serving is never touched: whatever goes wrong becomes an answer too.
#
#   vllm serve MODEL --worker-extension-cls moonroute_worker.MoonrouteWorker ...
#
# The folder of this file must be on PYTHONPATH of every worker. With another extension beside it: `compose`. moonroute_collect.py asks all ranks.
"""Answers `dynamo_mooncake_store_descriptor` in vLLM's workers."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

RPC_METHOD = "dynamo_mooncake_store_descriptor"
SCHEMA_VERSION = 1
#: The one build whose private behaviour the rules below were written against.
VLLM_REVISION = "1085b64425a9e6f5ca52876ad32e55fda5665f4e"
ADAPTER = "vllm-1085b644"

#: Longest descriptor, in bytes of its canonical JSON.
MAX_DESCRIPTOR_BYTES = 262_144
#: Most ranks of one engine.
MAX_WORLD_SIZE = 1024
#: Most connectors that are looked at in search of the store's.
MAX_CONNECTORS = 64
#: Most GPU groups, and most store groups.
MAX_GROUPS = 64
#: Most object-key prefixes of all groups together, and the longest one in UTF-8 bytes.
MAX_PREFIXES = 1024
MAX_PREFIX_BYTES = 4096
#: Longest reason, in characters.
MAX_REASON_CHARS = 200
#: Largest span, in tokens: routers count in signed 32-bit integers.
MAX_SPAN = 2**31 - 1

#: SHA-256 of the files that decide keys, hashes and hits, as they are at VLLM_REVISION: a version text does not show a patched wheel.
PINNED_FILES: dict[str, str] = {
    "distributed/kv_transfer/kv_connector/v1/mooncake/store/connector.py": (
        "2f8c7ae9bb6b9b43119a86421892d77c591533159752489a79e6e46e6255a2c2"
    ),
    "distributed/kv_transfer/kv_connector/v1/mooncake/store/coordinator.py": (
        "386033a398ea38495de5d951e990fa9b0139f0134a45157767ae1795ae1cd13b"
    ),
    "distributed/kv_transfer/kv_connector/v1/mooncake/store/data.py": (
        "1ecdc99faa10435bbb988b8ea083e48942a0cc7d51b69e273861a34638b5fea4"
    ),
    "distributed/kv_transfer/kv_connector/v1/mooncake/store/worker.py": (
        "bddabd71b6394c6d4eddc07238dbb5204c1c984aadb96db586346a0da59db099"
    ),
    "utils/hashing.py": "2e8fcc81dd675ed0fba49de8fd8658b4dab9ae26a917edaf5164bf266c56b4df",
    "v1/core/block_pool.py": "35b8427b6144b8cf7662ad5a5a14c0c3051e3542c4c196a920dc99d093c4499d",
    "v1/core/kv_cache_utils.py": "2b3d29bffd425ad65c0ce4e6f3fce6c6562642f0f8f18880adaa14c4cb3c0862",
    "v1/core/single_type_kv_cache_manager.py": "15360abf039513fab8f0fe99d7bc36283e63251d83e1c13f99368ae89bf13135",
    "v1/kv_cache_interface.py": "718ee51c8b845352f89c5eae8a449984713bc269829f4315e27c0fedf5305ef5",
}

#: Schedulers that hash and drop blocks as vLLM's own do; None is vLLM's choice between its two.
SCHEDULERS = (
    None,
    "vllm.v1.core.sched.scheduler.Scheduler",
    "vllm.v1.core.sched.async_scheduler.AsyncScheduler",
    "dynamo.vllm.instrumented_scheduler.InstrumentedScheduler",
)

DEFAULT_TENANT = "default"
TENANT_FILE_VARIABLE = "MOONCAKE_CONFIG_PATH"

STORE = "vllm.distributed.kv_transfer.kv_connector.v1.mooncake.store"

#: vLLM imports this file before it makes its worker, which then reads the Mooncake configuration.
LOADED_AT = time.time()


class Unsupported(Exception):
    """Why this engine has no contract: a stable code, what was seen, and what to do."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


def need(holds: bool, code: str, text: str) -> None:
    """Ends in `Unsupported` unless the condition holds."""
    if not holds:
        raise Unsupported(code, text)


class MoonrouteWorker:
    """Name it, or a class that has it among its bases, in --worker-extension-cls.

    vLLM refuses an extension that shares a name with its worker, so this has the RPC and nothing else.
    """

    vllm_config: Any  # the worker's own

    def dynamo_mooncake_store_descriptor(self) -> dict[str, Any]:
        """This rank's answer: `{"rank", "dp_rank", "descriptor"}`, or `{"unsupported": reason}`. Never raises."""
        try:
            return describe(self.vllm_config)
        except Unsupported as refusal:
            return {"unsupported": str(refusal)[:MAX_REASON_CHARS]}
        except Exception as error:  # an answer of any rank must not end the collective call
            return {"unsupported": f"internal-error: {type(error).__name__}: {error}"[:MAX_REASON_CHARS]}


def compose(other: type) -> type:
    """An extension that is both: the other's methods, and the RPC.

    In a module of your own, say `extensions.py`: `Worker = compose(TheirExtension)`, then
    --worker-extension-cls extensions.Worker.
    """
    if not isinstance(other, type):
        raise TypeError(f"compose takes a class, got {other!r}: give the other extension itself, not its name")
    if issubclass(other, MoonrouteWorker):
        return other
    if hasattr(other, RPC_METHOD):
        raise TypeError(f"{other.__name__} answers {RPC_METHOD} already: use one of the two extensions")
    return type(f"Moonroute{other.__name__}", (MoonrouteWorker, other), {"__module__": other.__module__})


def canonical(value: Any) -> str:
    """The one text of a JSON value: keys sorted, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def describe(config: Any) -> dict[str, Any]:
    """The rank's answer from the worker's `VllmConfig` and the live connector. Raises `Unsupported`."""
    check_build()
    check_input(config)
    check_hashes(config)
    rank, dp_rank = check_parallel(config)
    connector = store_connector(kv_transfer_group())
    worker = store_worker(connector)
    check_tenant()
    descriptor = descriptor_of(worker)
    need(
        len(canonical(descriptor).encode()) <= MAX_DESCRIPTOR_BYTES,
        "descriptor-too-large",
        f"its canonical JSON has more than {MAX_DESCRIPTOR_BYTES} bytes; use a shorter cache_prefix",
    )
    return {"rank": rank, "dp_rank": dp_rank, "descriptor": descriptor}


# ---- what runs ----


def check_build() -> None:
    """The build is the pinned one, and its files are unmodified."""
    try:
        distribution = importlib.metadata.distribution("vllm")
    except importlib.metadata.PackageNotFoundError:
        raise Unsupported("vllm-not-installed", "no installed package is called vllm") from None
    version = distribution.version
    need(
        built_from(version, distribution.read_text("direct_url.json")),
        "vllm-revision",
        f"vLLM {version} does not say that it was built from {VLLM_REVISION[:12]}; install that build",
    )
    root = Path(module("vllm").__file__).parent
    for name, digest in PINNED_FILES.items():
        try:
            found = hashlib.sha256((root / name).read_bytes()).hexdigest()
        except OSError as error:
            raise Unsupported("vllm-sources", f"vllm/{name} can't be read ({error.strerror})") from None
        need(found == digest, "vllm-sources", f"vllm/{name} is not that of the pinned revision; install it unmodified")


def built_from(version: str, direct_url: str | None) -> bool:
    """Whether a version, or what pip noted of the source (PEP 610), names the pinned commit.

    A tree with changes (`.dYYYYMMDD`) does not count.
    """
    if direct_url:
        try:
            commit = json.loads(direct_url).get("vcs_info", {}).get("commit_id")
        except (ValueError, AttributeError):
            commit = None
        if commit == VLLM_REVISION:
            return True
    scm = re.search(r"[+.]g([0-9a-f]{8,40})(?=\.|$)", version)
    changed = re.search(r"\.d\d{8}", version)
    return scm is not None and VLLM_REVISION.startswith(scm.group(1)) and changed is None


def check_input(config: Any) -> None:
    """What engines hash is text, and every block that they keep is hashed."""
    model = of(config, "model_config")
    runner = of(model, "runner_type")
    need(runner == "generate", "not-text-generation", f"the runner is {runner!r}; only text generation is supported")
    need(of(model, "is_multimodal_model") is False, "multimodal", "the model takes images or sound, which hashes cover")
    need(of(model, "enable_prompt_embeds") is False, "prompt-embeds", "prompt embeddings are on: leave them off")
    need(of(model, "is_encoder_decoder") is False, "encoder-decoder", "the model is an encoder-decoder")
    need(
        of(config, "speculative_config") is None,
        "speculative",
        "speculative decoding drops blocks after a hit: serve without it",
    )
    scheduler = of(config, "scheduler_config.scheduler_cls")
    need(
        any(scheduler is known or scheduler == known for known in SCHEDULERS),
        "scheduler",
        f"the scheduler is {shown(scheduler)}: only vLLM's own are known to hash alike",
    )


def check_hashes(config: Any) -> None:
    """Digests are of SHA-256 with the seed 0, and events tell their low 64 bits."""
    cache = of(config, "cache_config")
    need(of(cache, "enable_prefix_caching") is True, "prefix-caching-off", "start vLLM with --enable-prefix-caching")
    algorithm = of(cache, "prefix_caching_hash_algo")
    need(algorithm == "sha256", "hash-algorithm", f"it is {algorithm!r}; set --prefix-caching-hash-algo sha256")
    seed = os.environ.get("PYTHONHASHSEED")
    need(seed == "0", "hash-seed", f"PYTHONHASHSEED is {seed!r}; set it to 0 for every engine")
    need(
        of(module("vllm.envs"), "VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES") is True,
        "event-hashes",
        "events carry whole digests; leave VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES at 1",
    )
    events = of(config, "kv_events_config")
    need(
        events is not None and of(events, "enable_kv_cache_events") is True,
        "events-off",
        'no KV events are published; start vLLM with --kv-events-config \'{"enable_kv_cache_events": true, ...}\'',
    )


def check_parallel(config: Any) -> tuple[int, int]:
    """The rank's numbers; one engine answers for all of its ranks, and each of them holds whole blocks."""
    parallel = of(config, "parallel_config")
    pcp = of(parallel, "prefill_context_parallel_size")
    dcp = of(parallel, "decode_context_parallel_size")
    need(pcp == 1 and dcp == 1, "context-parallel", f"PCP is {pcp} and DCP is {dcp}; both must be 1")
    world = of(parallel, "world_size")
    need(
        is_whole(world) and 1 <= world <= MAX_WORLD_SIZE,
        "world-size",
        f"the engine has {shown(world)} ranks; at most {MAX_WORLD_SIZE} are supported",
    )
    # Of several engines behind one server, a collective call returns the first one's ranks alone.
    engines = of(parallel, "data_parallel_size")
    alone = engines == 1 or getattr(parallel, "data_parallel_external_lb", False) is True
    need(alone, "data-parallel", f"{shown(engines)} data-parallel engines share this server; give each its own")
    rank, dp_rank = of(parallel, "rank"), of(parallel, "data_parallel_index")
    need(
        is_whole(rank) and is_whole(dp_rank) and 0 <= rank < world and dp_rank >= 0,
        "rank",
        f"rank {shown(rank)} of {world}, data-parallel {shown(dp_rank)}, is no rank of this engine",
    )
    return rank, dp_rank


# ---- the connector ----


def kv_transfer_group() -> Any:
    """The root of this process' connectors."""
    transfer = module("vllm.distributed.kv_transfer")
    try:
        return of(transfer, "get_kv_transfer_group")()
    except AssertionError:
        raise Unsupported("no-connector", "no KV connector runs here; start vLLM with --kv-transfer-config") from None


def store_connector(root: Any) -> Any:
    """The one store connector, itself or inside MultiConnectors."""
    store = of(module(f"{STORE}.connector"), "MooncakeStoreConnector")
    multi = of(module("vllm.distributed.kv_transfer.kv_connector.v1.multi_connector"), "MultiConnector")
    found: list[Any] = []
    for connector in connectors_from(root, multi):
        if type(connector) is store:
            found.append(connector)
        else:
            # What a stranger does with keys and groups nobody has looked at.
            need(not isinstance(connector, store), "store-connector", f"{type(connector).__name__} is a changed one")
    need(len(found) == 1, "store-connector", f"{len(found)} MooncakeStoreConnectors run here; there must be one")
    return found[0]


def connectors_from(root: Any, multi: type) -> Iterator[Any]:
    """Every connector below the root, each once, a bounded number."""
    waiting, seen = [root], set()
    while waiting:
        connector = waiting.pop()
        need(id(connector) not in seen, "connector-graph", "a connector stands in the MultiConnectors twice")
        need(len(seen) < MAX_CONNECTORS, "connector-graph", f"there are more than {MAX_CONNECTORS} connectors")
        seen.add(id(connector))
        yield connector
        if type(connector) is multi:
            waiting.extend(of(connector, "sub_connectors"))


def store_worker(connector: Any) -> Any:
    """The connector's worker, which looks up and stores."""
    extra = of(connector, "_kv_transfer_config.kv_connector_extra_config")
    lookup = extra.get("enable_lookup", True)
    need(lookup is True, "lookup-off", f"enable_lookup is {lookup!r}, so nothing is ever restored: leave it out")
    worker = of(connector, "connector_worker")
    known = of(module(f"{STORE}.worker"), "MooncakeStoreWorker")
    need(type(worker) is known, "store-worker", "the connector has no MooncakeStoreWorker yet, or another one")
    need(of(worker, "_capacity_only") is False, "capacity-only", "the connector lends memory and stores no KV blocks")
    pcp, dcp = of(worker, "pcp_size"), of(worker, "dcp_size")
    need(pcp == 1 and dcp == 1, "context-parallel", f"the connector runs with PCP {pcp} and DCP {dcp}; both must be 1")
    coordinator = of(worker, "coord")
    known = of(module(f"{STORE}.coordinator"), "MooncakeStoreCoordinator")
    need(type(coordinator) is known, "coordinator", f"the coordinator is {type(coordinator).__name__}")
    eagle = of(coordinator, "use_eagle") or of(coordinator, "eagle_group_ids")
    need(not eagle, "eagle", "the coordinator drops blocks for Eagle: serve without speculative decoding")
    return worker


def check_tenant() -> None:
    """The store's tenant is the default one: keys do not tell it, and routers read no other's events.

    vLLM does not keep what it read, so the file is read again, by vLLM's own reader; one that was written since is not
    the one that counts.
    """
    config_class = of(module(f"{STORE}.worker"), "MooncakeStoreConfig")
    try:
        changed = os.stat(os.environ.get(TENANT_FILE_VARIABLE, "")).st_mtime > LOADED_AT
        tenant = of(config_class, "load_from_config")().tenant_id
    except Unsupported:
        raise
    except Exception as error:
        raise Unsupported(
            "tenant-unknown", f"the file in {TENANT_FILE_VARIABLE} does not tell the tenant ({type(error).__name__})"
        ) from None
    need(tenant == DEFAULT_TENANT, "tenant", f"tenant_id is {tenant!r}; let workers store as {DEFAULT_TENANT!r}")
    need(
        not changed,
        "tenant-unknown",
        f"the file in {TENANT_FILE_VARIABLE} was written after this worker began: start it anew",
    )


# ---- the geometry ----


def descriptor_of(worker: Any) -> dict[str, Any]:
    """The descriptor of a store worker's groups."""
    coordinator = of(worker, "coord")
    hash_span = span(of(coordinator, "hash_block_size"), "coord.hash_block_size")
    alignment = span(of(coordinator, "lcm_block_size"), "coord.lcm_block_size")
    need(
        of(worker, "hash_block_size") == hash_span and of(worker, "block_size") == alignment,
        "spans-disagree",
        "the worker and its coordinator have different block sizes",
    )
    partial = of(coordinator, "enable_partial_hash_hits")
    need(isinstance(partial, bool), "partial-hits", f"enable_partial_hash_hits is {shown(partial)}")
    projection, gpu_ids = projection_of(worker)
    taken: set[str] = set()
    groups = [group_of(worker, store_id, gpu_ids[store_id], taken) for store_id in range(len(gpu_ids))]
    prefixes = {of(db, "metadata.cache_prefix") for db in of(worker, "token_dbs")}
    need(len(prefixes) == 1, "cache-prefix", "groups have different cache prefixes")
    # Where no group is the main one, no event can teach: the first group and the hash span stand in its place, and routers see by these that it is none.
    main = next((group for group in groups if group["kind"] == "full_attention"), None)
    return {
        "schema_version": SCHEMA_VERSION,
        "adapter": ADAPTER,
        "vllm_revision": VLLM_REVISION,
        "hash": {
            "algorithm": "sha256",
            "digest_encoding": "hex",
            "gpu_event_hash": "low64",
            "seed_policy": "pythonhashseed-0",
            "key_separator": "@",
        },
        "input": {"text_only": True, "normalized_namespaces": True, "lora": True},
        "main_event_group": gpu_ids[0 if main is None else main["group_id"]],
        "main_event_block_size": hash_span if main is None else main["block_size"],
        "gpu_to_store_group": projection,
        "coordinator": {
            "lcm_block_size": alignment,
            "speculative": False,
            "drop_blocks": False,
            "partial_hash_hits": partial,
        },
        "groups": groups,
    }


def projection_of(worker: Any) -> tuple[list[int | None], list[int]]:
    """For each GPU group its store group, and for each store group its GPU group."""
    gpu_groups = of(worker, "_kv_cache_config.kv_cache_groups")
    gpu_ids = list(of(worker, "_kv_cache_config.prefix_cacheable_group_ids"))
    need(1 <= len(gpu_groups) <= MAX_GROUPS, "group-count", f"{len(gpu_groups)} GPU groups, of 1 to {MAX_GROUPS}")
    need(1 <= len(gpu_ids) <= MAX_GROUPS, "group-count", f"{len(gpu_ids)} store groups, of 1 to {MAX_GROUPS}")
    parts = ("token_dbs", "_lookup_key_prefixes", "_kv_cache_groups", "coord.kv_cache_groups")
    for part in parts:
        count = len(of(worker, part))
        need(count == len(gpu_ids), "group-projection", f"{part} has {count} entries for {len(gpu_ids)} store groups")
    ordered = all(is_whole(gpu) and 0 <= gpu < len(gpu_groups) for gpu in gpu_ids) and gpu_ids == sorted(set(gpu_ids))
    need(ordered, "group-projection", f"prefix_cacheable_group_ids {shown(gpu_ids)} is no ordered choice of GPU groups")
    store_ids = {gpu: store for store, gpu in enumerate(gpu_ids)}
    return [store_ids.get(gpu) for gpu in range(len(gpu_groups))], gpu_ids


def group_of(worker: Any, store_id: int, gpu_id: int, taken: set[str]) -> dict[str, Any]:
    """One store group, looked at from every side that has an opinion of it."""
    where = f"store group {store_id}"
    group = of(worker, "_kv_cache_groups")[store_id]
    need(of(group, "is_eagle_group") is False, "eagle", f"{where} is one of Eagle's")
    spec = of(group, "kv_cache_spec")
    others = (of(worker, "_kv_cache_config.kv_cache_groups")[gpu_id], of(worker, "coord.kv_cache_groups")[store_id])
    agree = all(of(other, "kv_cache_spec") == spec for other in others)
    need(agree, "specs-disagree", f"{where} has another spec in the cache configuration or the coordinator")
    kind = kind_of(spec, where)
    check_manager(worker, store_id, kind, where)
    database = of(worker, "token_dbs")[store_id]
    known = of(module(f"{STORE}.data"), "ChunkedTokenDatabase")
    need(type(database) is known, "token-database", f"that of {where} is {type(database).__name__}")
    block = span(of(database, "block_size"), f"{where}, block_size")
    hash_span, alignment = of(worker, "coord.hash_block_size"), of(worker, "coord.lcm_block_size")
    fits = (
        block == of(spec, "block_size")
        and of(database, "hash_block_size") == hash_span
        and block % hash_span == 0
        and alignment % block == 0
    )
    need(fits, "group-spans", f"{where}: block {block}, hash block {hash_span} and alignment {alignment} do not fit")
    need(of(database, "metadata.group_id") == store_id, "group-id", f"keys of {where} name another group")
    return {
        "group_id": store_id,
        "kind": kind["kind"],
        "spec": kind["spec"],
        "manager": kind["manager"],
        "block_size": block,
        "hash_block_size": hash_span,
        "key_prefixes": prefixes_of(worker, store_id, taken, where),
        "sliding_window": kind["sliding_window"],
        "mamba_cache_mode": kind["mamba_cache_mode"],
    }


def kind_of(spec: Any, where: str) -> dict[str, Any]:
    """What a spec's objects hold. Exact classes only: a subclass may restore otherwise (MLA, chunks, sinks)."""
    interface = module("vllm.v1.kv_cache_interface")
    if type(spec) is of(interface, "UniformTypeKVCacheSpecs"):
        members = list(of(spec, "kv_cache_specs").values())
        kinds = [kind_of(member, where) for member in members]
        alike = len(kinds) > 0 and all(kind == kinds[0] for kind in kinds)
        need(alike, "mixed-specs", f"layers of {where} are of different kinds")
        one_span = all(of(member, "block_size") == of(spec, "block_size") for member in members)
        need(one_span, "mixed-specs", f"layers of {where} have different block sizes")
        return kinds[0]
    if type(spec) is of(interface, "FullAttentionSpec"):
        plain = (
            of(spec, "sliding_window") is None
            and of(spec, "attention_chunk_size") is None
            and of(spec, "non_causal") is False
        )
        need(plain, "full-attention", f"{where} has a window, chunks, or attention that is not causal")
        return named("full_attention", "FullAttention")
    if type(spec) is of(interface, "SlidingWindowSpec"):
        need(of(spec, "extra_retained_tokens") == 0, "sliding-window", f"{where} retains tokens for speculation")
        window = span(of(spec, "sliding_window"), f"{where}, sliding_window")
        need(window > 1, "sliding-window", f"that of {where} is {window}; it counts the query token, so 2 or more")
        return named("sliding_window", "SlidingWindow", sliding_window=window)
    if type(spec) is of(interface, "MambaSpec"):
        mode = of(spec, "mamba_cache_mode")
        need(mode == "align", "mamba-mode", f"that of {where} is {mode!r}; set --mamba-cache-mode align")
        need(of(spec, "num_speculative_blocks") == 0, "mamba-mode", f"{where} keeps blocks for speculation")
        return named("mamba", "Mamba", mamba_cache_mode="align")
    raise Unsupported("unsupported-spec", f"{where} has a {type(spec).__name__}, which no rule covers")


def named(kind: str, family: str, **fields: Any) -> dict[str, Any]:
    """A kind with the names of its spec and manager."""
    names = {"kind": kind, "spec": f"{family}Spec", "manager": f"{family}Manager"}
    return {**names, "sliding_window": None, "mamba_cache_mode": None, **fields}


def check_manager(worker: Any, store_id: int, kind: Mapping[str, Any], where: str) -> None:
    """The coordinator looks the group up by the manager of its kind, in exactly one unit."""
    units = [unit for unit in of(worker, "coord.attention_groups") if store_id in of(unit, "group_ids")]
    need(len(units) == 1, "manager", f"{where} is in {len(units)} units of the coordinator; it must be in one")
    [unit] = units
    manager = of(module("vllm.v1.core.single_type_kv_cache_manager"), kind["manager"])
    need(of(unit, "manager_cls") is manager, "manager", f"{where} is not looked up by a plain {kind['manager']}")
    need(kind_of(of(unit, "spec"), where) == kind, "manager", f"{where} is looked up by another spec than its own")
    need(not of(unit, "use_eagle"), "eagle", f"{where} is looked up with Eagle's drop")


def prefixes_of(worker: Any, store_id: int, taken: set[str], where: str) -> list[str]:
    """The prefixes that a lookup of the group asks for, of all ranks, sorted."""
    cache_prefix = of(worker, "token_dbs")[store_id].metadata.cache_prefix
    named_prefix = isinstance(cache_prefix, str) and cache_prefix.strip() != ""
    need(
        named_prefix,
        "cache-prefix",
        "there is none; set cache_prefix in kv_connector_extra_config, one for each model, revision and KV type",
    )
    prefixes = of(worker, "_lookup_key_prefixes")[store_id]
    need(isinstance(prefixes, Sequence) and len(prefixes) > 0, "prefixes", f"{where} looks up no object")
    for prefix in prefixes:
        good = isinstance(prefix, str) and prefix.startswith(f"{cache_prefix}@") and not prefix.endswith("@")
        need(good, "prefixes", f"{where} looks up {shown(prefix)}, which does not begin with the cache prefix")
        try:
            length = len(prefix.encode())
        except UnicodeEncodeError:
            raise Unsupported("prefixes", f"{where} looks up {shown(prefix)}, which is no Unicode text") from None
        need(length <= MAX_PREFIX_BYTES, "prefixes", f"{where} has one of {length} bytes; {MAX_PREFIX_BYTES} at most")
        need(prefix not in taken, "prefixes", f"{where} looks up {shown(prefix)}, which another lookup asks for too")
        need(len(taken) < MAX_PREFIXES, "prefixes", f"all groups together look up more than {MAX_PREFIXES}")
        taken.add(prefix)
    return sorted(prefixes)


# ---- small things ----


def module(name: str) -> Any:
    """A module of vLLM's, which other builds may lack."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Unsupported("vllm-shape", f"this vLLM has no module {name}") from None


def of(thing: Any, path: str) -> Any:
    """An attribute of a private object, which may be gone."""
    for name in path.split("."):
        if not hasattr(thing, name):
            raise Unsupported("vllm-shape", f"{getattr(thing, '__name__', type(thing).__name__)} has no {name}")
        thing = getattr(thing, name)
    return thing


def is_whole(value: Any) -> bool:
    """Whether a value is an integer, and no truth value."""
    return type(value) is int


def span(value: Any, what: str) -> int:
    """A number of tokens."""
    need(is_whole(value) and 1 <= value <= MAX_SPAN, "span", f"{what} is {shown(value)}; it must be 1 to {MAX_SPAN}")
    return value


def shown(value: Any) -> str:
    """A foreign value as a reason may show it: short, one line."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
