# Stands in for vLLM: modules and classes of its names, with the attributes that the worker extension looks at, and nothing that computes.
