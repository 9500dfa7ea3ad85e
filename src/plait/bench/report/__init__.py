"""Tables of measurements as text, as Markdown and as drawings."""
