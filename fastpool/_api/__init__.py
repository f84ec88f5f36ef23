"""The public functions. Each finds or makes the plan of its call and runs it."""
