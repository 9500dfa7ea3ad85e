"""Explicit-state checking: tabulation, searches, replay."""
