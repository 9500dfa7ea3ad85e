"""Verdicts and traces as text, ITF, SVG and HTML: one format per file, all of them plain functions of plain data."""
