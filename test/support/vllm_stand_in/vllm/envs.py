# Stands in for vLLM's environment settings.
VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES = True
