# A rank of a stand-in engine, as it is when everything is in order; tests break one thing of it. The `vllm` beside this file stands in for vLLM.
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

HERE = Path(__file__).parent
EXTENSION = Path(os.environ.get("MOONROUTE_VLLM_FOLDER", HERE.parents[2] / "src" / "vllm"))
sys.path[:0] = [str(HERE), str(EXTENSION)]

import moonroute_worker  # noqa: E402
import vllm  # noqa: E402
import vllm.distributed.kv_transfer as transfer  # noqa: E402
from vllm.distributed.kv_transfer.kv_connector.v1.mooncake.store.connector import MooncakeStoreConnector  # noqa: E402
from vllm.distributed.kv_transfer.kv_connector.v1.mooncake.store.worker import MooncakeStoreWorker  # noqa: E402
from vllm.v1 import kv_cache_interface as interface  # noqa: E402

#: The fingerprints of the stand-in's own files.
STAND_IN_FILES = {
    name: hashlib.sha256((Path(vllm.__file__).parent / name).read_bytes()).hexdigest()
    for name in moonroute_worker.PINNED_FILES
}
FULL, WINDOW, MAMBA = interface.FullAttentionSpec, interface.SlidingWindowSpec, interface.MambaSpec


def group_with(spec: Any) -> SimpleNamespace:
    """A GPU group of layers."""
    return SimpleNamespace(kv_cache_spec=spec, is_eagle_group=False)


class Engine:
    """One rank: its worker's configuration, its connectors, and its surroundings."""

    def __init__(
        self,
        specs: list[Any] | None = None,
        *,
        scratch: tuple[int, ...] = (),
        hash_block_size: int = 16,
        tp: int = 1,
        pp: int = 1,
        kv_heads: int = 8,
        cache_prefix: str = "pool",
        rank: int = 0,
        dp_rank: int = 0,
    ) -> None:
        specs = [FULL()] if specs is None else specs
        self.variables: dict[str, str | None] = {"PYTHONHASHSEED": "0"}
        self.mooncake: Any = {"tenant_id": "default"}
        self.distribution = SimpleNamespace(
            version=f"0.31.1.dev7+g{moonroute_worker.VLLM_REVISION[:9]}", read_text=lambda _: None
        )
        self.files = dict(STAND_IN_FILES)
        self.int_hashes: Any = True
        self.config = SimpleNamespace(
            model_config=SimpleNamespace(
                runner_type="generate",
                is_multimodal_model=False,
                enable_prompt_embeds=False,
                is_encoder_decoder=False,
            ),
            speculative_config=None,
            scheduler_config=SimpleNamespace(scheduler_cls=None),
            cache_config=SimpleNamespace(enable_prefix_caching=True, prefix_caching_hash_algo="sha256"),
            kv_events_config=SimpleNamespace(enable_kv_cache_events=True),
            parallel_config=SimpleNamespace(
                prefill_context_parallel_size=1,
                decode_context_parallel_size=1,
                tensor_parallel_size=tp,
                pipeline_parallel_size=pp,
                world_size=tp * pp,
                data_parallel_size=1,
                data_parallel_index=dp_rank,
                rank=rank,
            ),
        )
        cache_config = SimpleNamespace(
            kv_cache_groups=[group_with(spec) for spec in specs],
            prefix_cacheable_group_ids=tuple(at for at in range(len(specs)) if at not in scratch),
        )
        self.worker = MooncakeStoreWorker(
            self.config, cache_config, hash_block_size, kv_heads=kv_heads, cache_prefix=cache_prefix, model="tiny"
        )
        self.connector: Any = MooncakeStoreConnector({"cache_prefix": cache_prefix}, self.worker)

    @contextlib.contextmanager
    def running(self) -> Iterator[Any]:
        """While it runs, its extension."""
        with contextlib.ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "mooncake.json"
            file.write_text(json.dumps(self.mooncake))
            os.utime(file, (moonroute_worker.LOADED_AT - 60,) * 2)
            variables = {moonroute_worker.TENANT_FILE_VARIABLE: str(file), **self.variables}
            stack.enter_context(mock.patch.dict(os.environ))
            for name, value in variables.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value
            stack.enter_context(mock.patch.object(moonroute_worker, "PINNED_FILES", self.files))
            stack.enter_context(
                mock.patch.object(moonroute_worker.importlib.metadata, "distribution", lambda _: self.distribution)
            )
            stack.enter_context(mock.patch("vllm.envs.VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES", self.int_hashes))
            stack.enter_context(mock.patch.object(transfer, "GROUP", self.connector))
            self.file = file
            extension = moonroute_worker.MoonrouteWorker()
            extension.vllm_config = self.config
            yield extension

    def reply(self) -> dict[str, Any]:
        """This rank's answer, through JSON as over HTTP."""
        with self.running() as extension:
            return json.loads(json.dumps(extension.dynamo_mooncake_store_descriptor()))


def pool(specs: list[Any] | None = None, *, tp: int = 1, pp: int = 1, **more: Any) -> list[dict[str, Any]]:
    """The answers of all ranks of an engine."""
    return [Engine(specs, tp=tp, pp=pp, rank=rank, **more).reply() for rank in range(tp * pp)]
