# Stands in for what names keys.
from types import SimpleNamespace


class ChunkedTokenDatabase:
    def __init__(self, metadata: SimpleNamespace, block_size: int, hash_block_size: int) -> None:
        self.metadata = metadata
        self.block_size = block_size
        self.hash_block_size = hash_block_size
