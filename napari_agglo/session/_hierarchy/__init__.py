"""The tree under edits, repaired where an edit touched it and only as far up as one looks."""
