"""Plans for people: in words and as drawings."""
