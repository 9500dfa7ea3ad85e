"""The small heart that every room shares: Verdict, Trace, errors, values. It imports no room."""
