"""Scripts that make what is in results/: `python -m recordings.<name>`, or `make record`."""
