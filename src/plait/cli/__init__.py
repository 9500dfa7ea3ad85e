"""The command line: thin commands over the other rooms. Data goes to stdout, everything else to stderr."""
