"""Frames of a video file, by ffmpeg itself; imageio leaves pipes open, which is a warning here."""

from __future__ import annotations

import re
import subprocess

import numpy as np


def read_video(path):
    """Return the frames, shape (n, height, width, 3), and how many there are a second."""
    import imageio_ffmpeg

    words = ["-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    done = subprocess.run(
        [imageio_ffmpeg.get_ffmpeg_exe(), *words], capture_output=True, check=True
    )
    message = done.stderr.decode()
    width, height = map(int, re.search(r"Video:.* (\d+)x(\d+)", message).groups())
    fps = float(re.search(r"([\d.]+) fps", message)[1])
    return np.frombuffer(done.stdout, np.uint8).reshape(-1, height, width, 3), fps
