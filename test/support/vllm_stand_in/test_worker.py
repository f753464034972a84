# The worker extension against the stand-in: every condition that a contract rests on is broken once, each by itself, and answered by its own code; what is
# in order is described as it is.
from __future__ import annotations

import dataclasses
import os
import sys
import unittest
from collections.abc import Callable
from types import SimpleNamespace
from unittest import mock

from engine import FULL, MAMBA, WINDOW, Engine, group_with, interface, moonroute_worker, pool

Break = Callable[[Engine], object]


def put(path: str, value: object) -> Break:
    """Sets an attribute below the engine; indices in brackets."""

    def act(engine: Engine) -> None:
        *way, last = path.split(".")
        thing: object = engine
        for name in way:
            thing = thing[int(name)] if name.isdigit() else getattr(thing, name)
        if isinstance(thing, dict):
            thing[last] = value
        elif last.isdigit():
            thing[int(last)] = value
        else:
            setattr(thing, last, value)

    return act


def drop(path: str) -> Break:
    """Takes an attribute away."""

    def act(engine: Engine) -> None:
        *way, last = path.split(".")
        thing: object = engine
        for name in way:
            thing = getattr(thing, name)
        delattr(thing, last)

    return act


def with_spec(spec: object) -> Break:
    """Another spec of the one group, for all that look at it."""

    def act(engine: Engine) -> None:
        changed = Engine([spec])
        engine.worker, engine.connector = changed.worker, changed.connector

    return act


class Changed(type(Engine().connector)):
    """A connector with other ways."""


def nested(engine: Engine, times: int) -> None:
    from vllm.distributed.kv_transfer.kv_connector.v1.multi_connector import MultiConnector

    for _ in range(times):
        engine.connector = MultiConnector(engine.connector)


def several(*extra: Callable[[Engine], object]) -> Break:
    from vllm.distributed.kv_transfer.kv_connector.v1.multi_connector import MultiConnector

    return lambda engine: setattr(
        engine, "connector", MultiConnector(engine.connector, *(make(engine) for make in extra))
    )


def many_prefixes(engine: Engine) -> None:
    engine.worker._lookup_key_prefixes[0] = tuple(f"pool@{at}" for at in range(1025))


def long_descriptor(engine: Engine) -> None:
    engine.worker._lookup_key_prefixes[0] = tuple(f"pool@{at}{'x' * 4000}" for at in range(66))


#: What is broken, how, the code, and what the reason says beside it.
CONDITIONS: list[tuple[str, Break, str, str]] = [
    ("the package is not installed", lambda e: setattr(e, "distribution", None), "vllm-not-installed", "no installed"),
    ("a release", put("distribution.version", "0.31.1"), "vllm-revision", "0.31.1"),
    ("another commit", put("distribution.version", "0.31.1.dev7+gd56bbf39"), "vllm-revision", "1085b64425a9"),
    ("too short a commit", put("distribution.version", "0.31.1.dev7+g1085b64"), "vllm-revision", "built from"),
    (
        "a build with local changes",
        put("distribution.version", "0.31.1.dev7+g1085b6442.d20260917"),
        "vllm-revision",
        "built from",
    ),
    (
        "another commit noted by pip",
        lambda e: setattr(
            e,
            "distribution",
            SimpleNamespace(version="0.31.1", read_text=lambda _: '{"vcs_info": {"commit_id": "d56bbf39"}}'),
        ),
        "vllm-revision",
        "built from",
    ),
    ("the runner", put("config.model_config.runner_type", "pooling"), "not-text-generation", "'pooling'"),
    ("images", put("config.model_config.is_multimodal_model", True), "multimodal", "images"),
    ("prompt embeddings", put("config.model_config.enable_prompt_embeds", True), "prompt-embeds", "leave them off"),
    ("an encoder", put("config.model_config.is_encoder_decoder", True), "encoder-decoder", "encoder"),
    ("speculation", put("config.speculative_config", SimpleNamespace()), "speculative", "without it"),
    ("a scheduler", put("config.scheduler_config.scheduler_cls", "mine.Scheduler"), "scheduler", "'mine.Scheduler'"),
    ("a scheduler class", put("config.scheduler_config.scheduler_cls", Engine), "scheduler", "Engine"),
    (
        "prefix caching",
        put("config.cache_config.enable_prefix_caching", False),
        "prefix-caching-off",
        "--enable-prefix-caching",
    ),
    (
        "the hash algorithm",
        put("config.cache_config.prefix_caching_hash_algo", "xxhash"),
        "hash-algorithm",
        "'xxhash'",
    ),
    ("the hash seed", put("variables.PYTHONHASHSEED", "9"), "hash-seed", "'9'"),
    ("no hash seed", put("variables.PYTHONHASHSEED", None), "hash-seed", "None"),
    ("whole digests in events", put("int_hashes", False), "event-hashes", "at 1"),
    ("no events configured", put("config.kv_events_config", None), "events-off", "--kv-events-config"),
    ("events off", put("config.kv_events_config.enable_kv_cache_events", False), "events-off", "--kv-events-config"),
    (
        "prefill context parallel",
        put("config.parallel_config.prefill_context_parallel_size", 2),
        "context-parallel",
        "PCP is 2 and DCP is 1",
    ),
    (
        "decode context parallel",
        put("config.parallel_config.decode_context_parallel_size", 2),
        "context-parallel",
        "PCP is 1 and DCP is 2",
    ),
    ("no ranks", put("config.parallel_config.world_size", 0), "world-size", "0 ranks"),
    ("1,025 ranks", put("config.parallel_config.world_size", 1025), "world-size", "at most 1024"),
    ("several engines behind a server", put("config.parallel_config.data_parallel_size", 2), "data-parallel", "2"),
    ("a rank past the last", put("config.parallel_config.rank", 1), "rank", "rank 1 of 1"),
    ("a rank that is no number", put("config.parallel_config.rank", True), "rank", "rank True"),
    ("no connector", put("connector", None), "no-connector", "--kv-transfer-config"),
    ("another connector", put("connector", SimpleNamespace()), "store-connector", "0 MooncakeStoreConnectors"),
    (
        "a changed connector",
        lambda e: setattr(e, "connector", Changed({}, e.worker)),
        "store-connector",
        "Changed is a changed one",
    ),
    (
        "two store connectors",
        several(lambda e: type(e.connector)({}, e.worker)),
        "store-connector",
        "2 MooncakeStoreConnectors",
    ),
    ("65 connectors", lambda e: nested(e, 64), "connector-graph", "more than 64"),
    ("a connector twice", several(lambda e: e.connector), "connector-graph", "twice"),
    (
        "lookups off",
        put("connector._kv_transfer_config.kv_connector_extra_config.enable_lookup", False),
        "lookup-off",
        "False",
    ),
    ("no store worker", put("connector.connector_worker", None), "store-worker", "no MooncakeStoreWorker"),
    ("capacity only", put("worker._capacity_only", True), "capacity-only", "lends memory"),
    ("context parallel in the connector", put("worker.dcp_size", 2), "context-parallel", "DCP 2"),
    ("another coordinator", put("worker.coord", SimpleNamespace()), "coordinator", "SimpleNamespace"),
    ("Eagle", put("worker.coord.use_eagle", True), "eagle", "Eagle"),
    ("groups of Eagle", put("worker.coord.eagle_group_ids", {0}), "eagle", "Eagle"),
    ("another tenant", put("mooncake.tenant_id", "blue"), "tenant", "'blue'"),
    ("an empty tenant", put("mooncake.tenant_id", ""), "tenant", "''"),
    ("no Mooncake configuration", put("mooncake", []), "tenant-unknown", "AttributeError"),
    ("no hash span", put("worker.coord.hash_block_size", 0), "span", "coord.hash_block_size is 0"),
    ("an alignment past every prompt", put("worker.coord.lcm_block_size", 2**31), "span", "coord.lcm_block_size"),
    ("an alignment that is no number", put("worker.coord.lcm_block_size", 16.0), "span", "16.0"),
    ("hash spans that disagree", put("worker.hash_block_size", 8), "spans-disagree", "different block sizes"),
    ("alignments that disagree", put("worker.block_size", 32), "spans-disagree", "different block sizes"),
    ("a partial flag that is none", put("worker.coord.enable_partial_hash_hits", None), "partial-hits", "None"),
    ("no groups", put("worker._kv_cache_config.kv_cache_groups", []), "group-count", "0 GPU groups"),
    (
        "65 GPU groups",
        put("worker._kv_cache_config.kv_cache_groups", [group_with(FULL())] * 65),
        "group-count",
        "65 GPU groups",
    ),
    (
        "no store groups",
        put("worker._kv_cache_config.prefix_cacheable_group_ids", ()),
        "group-count",
        "0 store groups",
    ),
    ("token databases missing", put("worker.token_dbs", []), "group-projection", "token_dbs has 0"),
    ("prefixes missing", put("worker._lookup_key_prefixes", []), "group-projection", "_lookup_key_prefixes has 0"),
    ("groups missing", put("worker._kv_cache_groups", []), "group-projection", "_kv_cache_groups has 0"),
    ("the coordinator's groups missing", put("worker.coord.kv_cache_groups", []), "group-projection", "coord."),
    (
        "a store group of no GPU group",
        put("worker._kv_cache_config.prefix_cacheable_group_ids", (1,)),
        "group-projection",
        "[1]",
    ),
    ("a group of Eagle", put("worker._kv_cache_groups.0.is_eagle_group", True), "eagle", "store group 0"),
    (
        "another spec in the configuration",
        put("worker._kv_cache_config.kv_cache_groups", [group_with(FULL(32))]),
        "specs-disagree",
        "store group 0",
    ),
    (
        "another spec in the coordinator",
        put("worker.coord.kv_cache_groups", [group_with(FULL(32))]),
        "specs-disagree",
        "store group 0",
    ),
    ("MLA", with_spec(interface.MLAAttentionSpec()), "unsupported-spec", "MLAAttentionSpec"),
    ("full attention with a window", with_spec(FULL(sliding_window=8)), "full-attention", "window"),
    ("full attention in chunks", with_spec(FULL(attention_chunk_size=8)), "full-attention", "chunks"),
    ("attention that looks ahead", with_spec(FULL(non_causal=True)), "full-attention", "not causal"),
    ("a window of one token", with_spec(WINDOW(sliding_window=1)), "sliding-window", "2 or more"),
    ("a window that is none", with_spec(WINDOW(sliding_window=None)), "span", "sliding_window is None"),
    ("a window with retention", with_spec(WINDOW(extra_retained_tokens=1)), "sliding-window", "retains"),
    ("mamba of another mode", with_spec(MAMBA(mamba_cache_mode="all")), "mamba-mode", "--mamba-cache-mode align"),
    ("mamba that speculates", with_spec(MAMBA(num_speculative_blocks=1)), "mamba-mode", "speculation"),
]


def uniform(*members: object, block: int = 16) -> object:
    return interface.UniformTypeKVCacheSpecs(block, {f"layer.{at}": spec for at, spec in enumerate(members)})


def spans(**changes: int) -> Break:
    """Other spans, for all that know them."""
    places = {
        "hash_block_size": ("coord.hash_block_size", "hash_block_size", "token_dbs.0.hash_block_size"),
        "alignment": ("coord.lcm_block_size", "block_size"),
    }

    def act(engine: Engine) -> None:
        for name, value in changes.items():
            for place in places[name]:
                put(f"worker.{place}", value)(engine)

    return act


#: A token database of another class.
STRANGER = SimpleNamespace(metadata=SimpleNamespace(cache_prefix="pool"))


def of_uniform(spec: object) -> Break:
    """The one group's spec, once it runs."""

    def act(engine: Engine) -> None:
        group = group_with(spec)
        engine.worker._kv_cache_groups = [group]
        engine.worker._kv_cache_config.kv_cache_groups = [group]
        engine.worker.coord.kv_cache_groups = [group]
        engine.worker.coord.attention_groups[0].spec = spec

    return act


CONDITIONS += [
    ("a uniform group without layers", of_uniform(uniform()), "mixed-specs", "different kinds"),
    (
        "a uniform group of two windows",
        of_uniform(uniform(WINDOW(), WINDOW(sliding_window=32))),
        "mixed-specs",
        "kinds",
    ),
    ("a uniform group of two spans", of_uniform(uniform(FULL(), FULL(32))), "mixed-specs", "block sizes"),
    ("a group in no unit", put("worker.coord.attention_groups", []), "manager", "in 0 units"),
    (
        "a group in two units",
        lambda e: e.worker.coord.attention_groups.append(e.worker.coord.attention_groups[0]),
        "manager",
        "in 2 units",
    ),
    ("another manager", put("worker.coord.attention_groups.0.manager_cls", Engine), "manager", "FullAttentionManager"),
    ("a unit of another spec", put("worker.coord.attention_groups.0.spec", WINDOW()), "manager", "another spec"),
    ("a unit with Eagle's drop", put("worker.coord.attention_groups.0.use_eagle", True), "eagle", "drop"),
    ("another token database", put("worker.token_dbs.0", STRANGER), "token-database", "SimpleNamespace"),
    ("a block that is not the spec's", put("worker.token_dbs.0.block_size", 32), "group-spans", "block 32"),
    ("a hash block of its own", put("worker.token_dbs.0.hash_block_size", 8), "group-spans", "do not fit"),
    ("a block that hash blocks do not fill", spans(hash_block_size=12), "group-spans", "hash block 12"),
    ("an alignment that blocks do not fill", spans(alignment=24), "group-spans", "alignment 24"),
    ("keys of another group", put("worker.token_dbs.0.metadata.group_id", 1), "group-id", "another group"),
    ("no cache prefix", put("worker.token_dbs.0.metadata.cache_prefix", ""), "cache-prefix", "kv_connector_extra"),
    ("a blank cache prefix", put("worker.token_dbs.0.metadata.cache_prefix", "  "), "cache-prefix", "there is none"),
    ("no prefixes", put("worker._lookup_key_prefixes.0", ()), "prefixes", "looks up no object"),
    ("a prefix of another pool", put("worker._lookup_key_prefixes.0", ("other@tiny",)), "prefixes", "other@tiny"),
    ("a prefix without its separator", put("worker._lookup_key_prefixes.0", ("pooltiny",)), "prefixes", "pooltiny"),
    ("a prefix that ends in @", put("worker._lookup_key_prefixes.0", ("pool@tiny@",)), "prefixes", "pool@tiny@"),
    ("a prefix that is no text", put("worker._lookup_key_prefixes.0", (7,)), "prefixes", "7"),
    ("a prefix that is no Unicode", put("worker._lookup_key_prefixes.0", ("pool@\ud800",)), "prefixes", "Unicode"),
    ("a prefix twice", put("worker._lookup_key_prefixes.0", ("pool@a", "pool@a")), "prefixes", "another lookup"),
    (
        "a prefix of 4,097 bytes",
        put("worker._lookup_key_prefixes.0", ("pool@" + "é" * 2046,)),
        "prefixes",
        "4097 bytes",
    ),
    ("1,025 prefixes", many_prefixes, "prefixes", "more than 1024"),
    ("a descriptor past its size", long_descriptor, "descriptor-too-large", "262144 bytes"),
    ("an attribute that is gone", drop("worker.coord"), "vllm-shape", "MooncakeStoreWorker has no coord"),
    ("a configuration that is gone", drop("config.cache_config"), "vllm-shape", "has no cache_config"),
]


class Conditions(unittest.TestCase):
    """Filled from the table: one test a condition."""


def condition(break_: Break, code: str, words: str) -> Callable[[unittest.TestCase], None]:
    def test(self: unittest.TestCase) -> None:
        engine = Engine()
        self.assertIn("descriptor", engine.reply())
        break_(engine)
        if engine.distribution is None:
            missing = moonroute_worker.importlib.metadata.PackageNotFoundError("vllm")
            with engine.running() as extension, mock.patch.object(
                moonroute_worker.importlib.metadata, "distribution", side_effect=missing
            ):
                reply = extension.dynamo_mooncake_store_descriptor()
        else:
            reply = engine.reply()
        self.assertEqual(list(reply), ["unsupported"], reply)
        self.assertTrue(reply["unsupported"].startswith(f"{code}: "), reply["unsupported"])
        self.assertIn(words, reply["unsupported"])
        self.assertLessEqual(len(reply["unsupported"]), 200)

    return test


for name, break_, code, words in CONDITIONS:
    setattr(Conditions, f"test {name}", condition(break_, code, words))


class Sources(unittest.TestCase):
    """The fingerprints."""


def changed_source(file: str) -> Callable[[unittest.TestCase], None]:
    def test(self: unittest.TestCase) -> None:
        engine = Engine()
        engine.files[file] = "0" * 64
        self.assertIn(f"vllm-sources: vllm/{file} is not that", engine.reply()["unsupported"])

    return test


for file in moonroute_worker.PINNED_FILES:
    setattr(Sources, f"test {file} is held to its fingerprint", changed_source(file))


class Surroundings(unittest.TestCase):
    def test_nine_files_are_pinned_and_the_known_digests_are_theirs(self) -> None:
        files = moonroute_worker.PINNED_FILES
        self.assertEqual(len(files), 9)
        self.assertTrue(all(len(digest) == 64 and int(digest, 16) >= 0 for digest in files.values()))
        coordinator = "distributed/kv_transfer/kv_connector/v1/mooncake/store/coordinator.py"
        self.assertTrue(files[coordinator].startswith("386033a398ea38495de5d951e990fa9b"))
        self.assertTrue(files["utils/hashing.py"].startswith("2e8fcc81"))

    def test_a_file_that_is_gone_is_said(self) -> None:
        engine = Engine()
        engine.files["v1/core/gone.py"] = "0" * 64
        self.assertIn("vllm-sources: vllm/v1/core/gone.py can't be read", engine.reply()["unsupported"])

    def test_the_commit_that_pip_noted_counts_whatever_the_version_says(self) -> None:
        engine = Engine()
        noted = f'{{"vcs_info": {{"commit_id": "{moonroute_worker.VLLM_REVISION}"}}}}'
        engine.distribution = SimpleNamespace(version="0.31.1", read_text=lambda name: {"direct_url.json": noted}[name])
        self.assertIn("descriptor", engine.reply())

    def test_notes_that_can_not_be_read_count_for_nothing(self) -> None:
        for text in ("{", "[]", '{"vcs_info": []}'):
            self.assertFalse(moonroute_worker.built_from("0.31.1", text), text)
            self.assertTrue(moonroute_worker.built_from("0.31.1.dev7+g1085b644", text), text)

    def test_schedulers_of_vllm_are_known(self) -> None:
        for name in moonroute_worker.SCHEDULERS:
            engine = Engine()
            engine.config.scheduler_config.scheduler_cls = name
            self.assertIn("descriptor", engine.reply())

    def test_engines_with_servers_of_their_own_answer_for_themselves(self) -> None:
        engine = Engine(dp_rank=3)
        engine.config.parallel_config.data_parallel_size = 4
        engine.config.parallel_config.data_parallel_external_lb = True
        self.assertEqual(engine.reply()["dp_rank"], 3)

    def test_a_mooncake_configuration_written_after_the_start_counts_for_nothing(self) -> None:
        engine = Engine()
        with engine.running() as extension:
            os.utime(engine.file, (moonroute_worker.LOADED_AT + 60,) * 2)
            reply = extension.dynamo_mooncake_store_descriptor()
        self.assertIn("tenant-unknown: the file in MOONCAKE_CONFIG_PATH was written after", reply["unsupported"])

    def test_without_a_mooncake_configuration_the_tenant_is_unknown(self) -> None:
        engine = Engine()
        with engine.running() as extension:
            del os.environ["MOONCAKE_CONFIG_PATH"]
            reply = extension.dynamo_mooncake_store_descriptor()
        self.assertIn("tenant-unknown: ", reply["unsupported"])

    def test_a_fault_nobody_thought_of_is_an_answer_too(self) -> None:
        engine = Engine()
        engine.config.model_config = type("Odd", (), {"runner_type": property(lambda _: 1 / 0)})()
        self.assertIn("internal-error: ZeroDivisionError", engine.reply()["unsupported"])

    def test_a_module_that_is_gone_is_said(self) -> None:
        engine = Engine()
        gone = "vllm.distributed.kv_transfer.kv_connector.v1.multi_connector"
        with engine.running() as extension, mock.patch.dict(sys.modules, {gone: None}):
            reply = extension.dynamo_mooncake_store_descriptor()
        self.assertIn(f"vllm-shape: this vLLM has no module {gone}", reply["unsupported"])

    def test_reasons_are_cut_to_200_characters(self) -> None:
        engine = Engine()
        engine.config.scheduler_config.scheduler_cls = "x" * 500
        engine.config.model_config.runner_type = "y" * 500
        self.assertEqual(len(engine.reply()["unsupported"]), 200)


class TwoGroups(unittest.TestCase):
    def test_cache_prefixes_that_differ_are_refused(self) -> None:
        engine = Engine([FULL(), WINDOW()])
        engine.worker.token_dbs[1].metadata.cache_prefix = "other"
        engine.worker._lookup_key_prefixes[1] = ("other@tiny",)
        self.assertIn("cache-prefix: groups have different cache prefixes", engine.reply()["unsupported"])

    def test_a_prefix_of_two_groups_is_refused(self) -> None:
        engine = Engine([FULL(), WINDOW()])
        engine.worker._lookup_key_prefixes[1] = engine.worker._lookup_key_prefixes[0]
        self.assertIn("prefixes: store group 1 looks up", engine.reply()["unsupported"])

    def test_store_groups_out_of_order_are_refused(self) -> None:
        engine = Engine([FULL(), FULL()])
        engine.worker._kv_cache_config.prefix_cacheable_group_ids = (1, 0)
        self.assertIn("group-projection: ", engine.reply()["unsupported"])


class Composition(unittest.TestCase):
    class Theirs:
        def their_rpc(self) -> str:
            return "theirs"

    def test_both_extensions_answer(self) -> None:
        both = moonroute_worker.compose(self.Theirs)
        with Engine().running() as extension:
            worker = both()
            worker.vllm_config = extension.vllm_config
            self.assertEqual(worker.their_rpc(), "theirs")
            self.assertIn("descriptor", worker.dynamo_mooncake_store_descriptor())
        self.assertEqual((both.__module__, both.__name__), (self.Theirs.__module__, "MoonrouteTheirs"))

    def test_inheritance_by_hand_does_it_too(self) -> None:
        class Both(moonroute_worker.MoonrouteWorker, self.Theirs):
            pass

        self.assertIs(moonroute_worker.compose(Both), Both)
        self.assertEqual(Both().their_rpc(), "theirs")

    def test_what_is_no_class_or_answers_already_is_refused(self) -> None:
        rival = type("Rival", (), {moonroute_worker.RPC_METHOD: lambda self: {}})
        for other, words in ((rival, "Rival answers"), ("theirs.Extension", "takes a class")):
            with self.assertRaisesRegex(TypeError, words):
                moonroute_worker.compose(other)

    def test_vllm_finds_no_name_of_its_worker_in_it(self) -> None:
        # vLLM refuses extensions with attributes that its worker has; underscores in front alone are no excuse.
        names = [name for name in dir(moonroute_worker.MoonrouteWorker) if not name.startswith("__")]
        self.assertEqual(names, [moonroute_worker.RPC_METHOD])


class Descriptors(unittest.TestCase):
    def group(self, engine: Engine, at: int = 0) -> dict[str, object]:
        return engine.reply()["descriptor"]["groups"][at]

    def test_what_is_said_of_a_plain_engine(self) -> None:
        descriptor = Engine().reply()["descriptor"]
        self.assertEqual(descriptor["main_event_block_size"], 16)
        self.assertEqual(descriptor["groups"][0]["key_prefixes"], ["pool@tiny@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0"])

    def test_tensor_and_pipeline_ranks_say_the_same_of_all(self) -> None:
        replies = pool([FULL(), MAMBA()], tp=4, pp=2, kv_heads=2)
        self.assertEqual([reply["rank"] for reply in replies], list(range(8)))
        self.assertTrue(all(reply["descriptor"] == replies[0]["descriptor"] for reply in replies))
        heads, states = replies[0]["descriptor"]["groups"]
        self.assertEqual((len(heads["key_prefixes"]), len(states["key_prefixes"])), (4, 8))
        self.assertEqual(heads["key_prefixes"], sorted(heads["key_prefixes"]))

    def test_windows_states_and_scratch_groups_keep_their_places(self) -> None:
        engine = Engine([WINDOW(sliding_window=100), FULL(), FULL(), MAMBA(32)], scratch=(1,), hash_block_size=16)
        descriptor = engine.reply()["descriptor"]
        self.assertEqual(descriptor["gpu_to_store_group"], [0, None, 1, 2])
        self.assertEqual(descriptor["main_event_group"], 2)
        self.assertEqual(descriptor["coordinator"]["lcm_block_size"], 32)
        self.assertIs(descriptor["coordinator"]["partial_hash_hits"], True)
        fields = ("kind", "spec", "manager", "sliding_window", "mamba_cache_mode")
        kinds = [tuple(group[field] for field in fields) for group in descriptor["groups"]]
        self.assertEqual(
            kinds,
            [
                ("sliding_window", "SlidingWindowSpec", "SlidingWindowManager", 100, None),
                ("full_attention", "FullAttentionSpec", "FullAttentionManager", None, None),
                ("mamba", "MambaSpec", "MambaManager", None, "align"),
            ],
        )

    def test_a_uniform_group_is_what_its_layers_are(self) -> None:
        self.assertEqual(self.group(Engine([uniform(WINDOW(), WINDOW())]))["sliding_window"], 64)
        self.assertEqual(self.group(Engine([uniform(FULL(), FULL())]))["spec"], "FullAttentionSpec")

    def test_without_full_attention_no_event_teaches_and_the_hash_span_stands_in(self) -> None:
        descriptor = Engine([WINDOW()], hash_block_size=16).reply()["descriptor"]
        self.assertEqual((descriptor["main_event_group"], descriptor["main_event_block_size"]), (0, 16))

    def test_a_store_connector_inside_others_is_found(self) -> None:
        engine = Engine()
        nested(engine, 3)
        self.assertIn("descriptor", engine.reply())
        nested(engine, 60)
        self.assertIn("descriptor", engine.reply())

    def test_bounds_are_reached(self) -> None:
        engine = Engine()
        engine.worker._lookup_key_prefixes[0] = tuple(f"pool@{at}" for at in range(1024))
        self.assertEqual(len(self.group(engine)["key_prefixes"]), 1024)
        engine.worker._lookup_key_prefixes[0] = ("pool@" + "x" * 4091,)
        self.assertIn("descriptor", engine.reply())
        engine = Engine([FULL()] * 64, kv_heads=1)
        self.assertEqual(len(engine.reply()["descriptor"]["groups"]), 64)

    def test_nothing_of_the_engine_is_changed_by_asking(self) -> None:
        engine = Engine([FULL(), MAMBA()])
        before = [dataclasses.asdict(group.kv_cache_spec) for group in engine.worker._kv_cache_groups]
        self.assertEqual(engine.reply(), engine.reply())
        self.assertEqual([dataclasses.asdict(g.kv_cache_spec) for g in engine.worker._kv_cache_groups], before)
