"""A bank: the sum of all accounts and of the pool is always the same, in every consistent state of all servers together.

Each owner has two accounts. Moving money between them is local. Giving money to the pool is global.
"""

OWNERS = 6
TOTAL = OWNERS * 1000
SCHEMA = """
CREATE TABLE accounts (owner INTEGER NOT NULL, kind INTEGER NOT NULL, balance INTEGER NOT NULL,
  PRIMARY KEY (owner, kind));
CREATE TABLE pool (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
INSERT INTO accounts VALUES (0, 0, 1000), (1, 0, 1000), (2, 0, 1000), (3, 0, 1000), (4, 0, 1000), (5, 0, 1000);
INSERT INTO accounts VALUES (0, 1, 0), (1, 1, 0), (2, 1, 0), (3, 1, 0), (4, 1, 0), (5, 1, 0);
INSERT INTO pool VALUES (1, 0);
"""


def move(db, owner, amount):
    """Local: from one account of an owner to the other."""
    db.execute("UPDATE accounts SET balance = balance - ? WHERE owner = ? AND kind = 0", (amount, owner))
    db.execute("UPDATE accounts SET balance = balance + ? WHERE owner = ? AND kind = 1", (amount, owner))


def give(db, owner, amount):
    """Global: from an account to the pool, which everybody sees."""
    db.execute("UPDATE accounts SET balance = balance - ? WHERE owner = ? AND kind = 0", (amount, owner))
    db.execute("UPDATE pool SET balance = balance + ? WHERE id = 1", (amount,))


def pooled(db):
    return db.execute("SELECT balance FROM pool WHERE id = 1").fetchone()[0]
