"""Operation partitioning: which operations of a SQL application need no coordination (thesis 004, chapter 2)."""
