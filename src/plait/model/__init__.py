"""What a user writes: Process, Message, Monitor, System, handlers, networks, faults, properties."""
