"""Grids of parameters: from values to points, to lanes of one run, to files that survive interruptions."""
