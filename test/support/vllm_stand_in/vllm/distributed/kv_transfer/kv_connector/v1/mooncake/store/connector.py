# Stands in for the store connector of a worker process.
from types import SimpleNamespace
from typing import Any


class MooncakeStoreConnector:
    def __init__(self, extra: dict[str, Any], worker: Any) -> None:
        self._kv_transfer_config = SimpleNamespace(kv_connector_extra_config=extra)
        self.connector_worker = worker
