"""Side by side: several segmentations of one image, moved together."""
