"""The oracle: a slow, obvious checker in plain Python that the native engine is compared with."""
