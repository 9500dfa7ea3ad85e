"""From the source of an application to its transactions.

In: Python modules (read, never imported), or lists in YAML or SQL. Out: the SQL statements of each transaction, and the
parameters that flow into them. Open `modules.py` first, then `functions.py`. `sqlalchemy_core.py` translates SQLAlchemy
Core, `listing.py` reads lists.
"""
