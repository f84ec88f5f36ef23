"""Pictures of docs/inside.md and docs/performance.md, drawn when the site is built."""
