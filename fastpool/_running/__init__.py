"""From a plan and arrays to compiled code: how, in which parts, on how many threads."""
