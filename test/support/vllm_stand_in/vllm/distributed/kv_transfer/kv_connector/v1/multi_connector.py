# Stands in for the connector that holds several.
from typing import Any


class MultiConnector:
    def __init__(self, *connectors: Any) -> None:
        self.sub_connectors = list(connectors)
