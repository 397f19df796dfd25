"""The Train step."""
