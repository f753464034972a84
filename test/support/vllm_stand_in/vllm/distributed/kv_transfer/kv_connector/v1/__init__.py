# Stands in for vLLM's package of that name.
