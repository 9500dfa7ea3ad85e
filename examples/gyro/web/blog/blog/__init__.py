"""A microblog: Django. Nothing in it knows of Plait. Authors have a profile and drafts, and publish posts."""
