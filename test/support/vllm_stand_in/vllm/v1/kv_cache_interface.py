# Stands in for what a group of layers keeps.
from dataclasses import dataclass, field


@dataclass(frozen=True)
class FullAttentionSpec:
    block_size: int = 16
    sliding_window: int | None = None
    attention_chunk_size: int | None = None
    non_causal: bool = False


@dataclass(frozen=True)
class MLAAttentionSpec(FullAttentionSpec):
    pass


@dataclass(frozen=True)
class SlidingWindowSpec:
    block_size: int = 16
    sliding_window: int = 64
    extra_retained_tokens: int = 0


@dataclass(frozen=True)
class MambaSpec:
    block_size: int = 16
    mamba_cache_mode: str = "align"
    num_speculative_blocks: int = 0


@dataclass(frozen=True)
class UniformTypeKVCacheSpecs:
    block_size: int = 16
    kv_cache_specs: dict[str, object] = field(default_factory=dict)
