# Stands in for the managers that look groups up.
class FullAttentionManager:
    pass


class SlidingWindowManager:
    pass


class MambaManager:
    pass
