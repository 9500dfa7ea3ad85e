"""One file per section of the benchmark; each has run(settings) and gives a Section."""
