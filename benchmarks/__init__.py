"""Side-by-side measurements of the kernels and their public peers: ``python -m benchmarks --help``."""
