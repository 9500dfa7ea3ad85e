"""Error propagation analysis: recording, sanitizing, reversibility, comparison, fault campaigns (thesis 004, chapter 5)."""
