"""Statistics: `intervals` of any estimate, `resampling`, `tests`, and the `table` of results."""
