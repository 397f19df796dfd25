"""The Compare dock: several segmentations of one image side by side."""
