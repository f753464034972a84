# Stands in for a file that is fingerprinted.
