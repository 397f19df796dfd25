"""The Evaluate step."""
