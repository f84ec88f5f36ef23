"""What a pooling computes, resolved to Python integers: no array and no compiled code."""
