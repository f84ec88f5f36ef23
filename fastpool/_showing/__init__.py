"""Show plans to people, in words and as drawings."""
