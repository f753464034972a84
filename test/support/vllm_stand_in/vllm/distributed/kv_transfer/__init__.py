# Stands in for the process' root connector. Tests put one in.
from typing import Any

GROUP: Any = None


def get_kv_transfer_group() -> Any:
    assert GROUP is not None, "disaggregated KV cache transfer parallel group is not initialized"
    return GROUP
