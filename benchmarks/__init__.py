"""Speed and memory, measured as ratios to what users would pick instead, within one run."""
