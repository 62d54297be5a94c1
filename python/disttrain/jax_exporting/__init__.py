"""The parts of disttrain.export_jax (disttrain/jax_export.py)."""
