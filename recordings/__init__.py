"""Scripts that make what stands in results/: `python -m recordings.<name>`, or `make record`."""
