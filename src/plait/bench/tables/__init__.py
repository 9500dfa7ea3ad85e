"""The tables of the papers, measured again: one file per table."""
