"""The Data step."""
