"""The Hierarchy step."""
