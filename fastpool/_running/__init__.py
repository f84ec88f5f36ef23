"""Run plans on arrays: choose the strategy, the tiles and the threads, and call compiled code."""
