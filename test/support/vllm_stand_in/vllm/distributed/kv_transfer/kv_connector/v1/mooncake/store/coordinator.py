# Stands in for the store's coordinator: groups with equal specs are one unit.
import math
from types import SimpleNamespace
from typing import Any

from vllm.v1.core import single_type_kv_cache_manager as managers
from vllm.v1.kv_cache_interface import MambaSpec, SlidingWindowSpec, UniformTypeKVCacheSpecs


def manager_of(spec: Any) -> type:
    if isinstance(spec, UniformTypeKVCacheSpecs):
        return manager_of(next(iter(spec.kv_cache_specs.values())))
    if isinstance(spec, MambaSpec):
        return managers.MambaManager
    return managers.SlidingWindowManager if isinstance(spec, SlidingWindowSpec) else managers.FullAttentionManager


class MooncakeStoreCoordinator:
    def __init__(self, groups: list[Any], hash_block_size: int) -> None:
        blocks = [group.kv_cache_spec.block_size for group in groups]
        self.kv_cache_groups = groups
        self.use_eagle = False
        self.eagle_group_ids: set[int] = set()
        self.hash_block_size = hash_block_size
        self.lcm_block_size = math.lcm(*blocks)
        self.enable_partial_hash_hits = any(
            isinstance(group.kv_cache_spec, MambaSpec) and group.kv_cache_spec.block_size > hash_block_size
            for group in groups
        )
        self.attention_groups: list[Any] = []
        for at, group in enumerate(groups):
            spec = group.kv_cache_spec
            unit = next((unit for unit in self.attention_groups if unit.spec == spec), None)
            if unit is None:
                unit = SimpleNamespace(spec=spec, group_ids=[], manager_cls=manager_of(spec), use_eagle=False)
                self.attention_groups.append(unit)
            unit.group_ids.append(at)
