# Stands in for the store's worker. Which prefixes a lookup asks for follows vLLM's rule: mamba states of every rank, heads of every rank that has its
# own, and of every pipeline stage.
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from vllm.v1.kv_cache_interface import MambaSpec, MLAAttentionSpec

from .coordinator import MooncakeStoreCoordinator
from .data import ChunkedTokenDatabase


@dataclass
class MooncakeStoreConfig:
    tenant_id: str = "default"

    @staticmethod
    def load_from_config() -> "MooncakeStoreConfig":
        import json
        import os

        with open(os.environ["MOONCAKE_CONFIG_PATH"]) as file:
            return MooncakeStoreConfig(json.load(file).get("tenant_id", "default"))


class MooncakeStoreWorker:
    def __init__(
        self, config: Any, cache_config: Any, hash_block_size: int, *, kv_heads: int, cache_prefix: str, model: str
    ) -> None:
        self._capacity_only = False
        self.pcp_size = config.parallel_config.prefill_context_parallel_size
        self.dcp_size = config.parallel_config.decode_context_parallel_size
        self._kv_cache_config = cache_config
        self._kv_cache_groups = [cache_config.kv_cache_groups[gpu] for gpu in cache_config.prefix_cacheable_group_ids]
        self.coord = MooncakeStoreCoordinator(list(self._kv_cache_groups), hash_block_size)
        self.hash_block_size = hash_block_size
        self.block_size = self.coord.lcm_block_size
        self.token_dbs = []
        self._lookup_key_prefixes = []
        tp, pp = config.parallel_config.tensor_parallel_size, config.parallel_config.pipeline_parallel_size
        for at, group in enumerate(self._kv_cache_groups):
            spec = group.kv_cache_spec
            metadata = SimpleNamespace(group_id=at, cache_prefix=cache_prefix, model_name=model)
            self.token_dbs.append(ChunkedTokenDatabase(metadata, spec.block_size, hash_block_size))
            replicas = 1 if isinstance(spec, MambaSpec) else max(1, tp // kv_heads)
            if isinstance(spec, MLAAttentionSpec):
                replicas = tp
            head = f"{cache_prefix}@{model}" if cache_prefix else model
            self._lookup_key_prefixes.append(
                tuple(
                    f"{head}@tp_rank:{shard}@pcp0@dcp0@pp_rank:{stage}@group:{at}"
                    for shard in range(tp // replicas)
                    for stage in range(pp)
                )
            )
