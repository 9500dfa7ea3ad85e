"""The board application in SQLAlchemy Core: the same operations, with the same replies."""

from sqlalchemy import Column, Float, Integer, MetaData, String, Table, insert, select, update

metadata = MetaData()
boards_ = Table("boards", metadata, Column("id", Integer, primary_key=True), Column("items", String, nullable=False))
notes_ = Table("notes", metadata, Column("owner", Integer, primary_key=True), Column("items", String, nullable=False))
people_ = Table(
    "people",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("colour", String, nullable=False),
    Column("score", Integer, nullable=False),
)
tickets_ = Table(
    "tickets",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("owner", Integer, nullable=False),
    Column("label", String),
    Column("drawn", Float),
)
prizes_ = Table(
    "prizes",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("ticket", Integer, nullable=False),
    Column("label", String),
)
bids_ = Table(
    "bids",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("bidder", Integer, nullable=False),
    Column("item", Integer, nullable=False),
    Column("amount", Integer, nullable=False),
)


def note(connection, owner, value):
    more = update(notes_).where(notes_.c.owner == owner)
    connection.execute(more.values(items=notes_.c["items"] + " " + str(value)))
    return connection.scalar(select(notes_.c["items"]).where(notes_.c.owner == owner))


def notes(connection, owner):
    return connection.scalar(select(notes_.c["items"]).where(notes_.c.owner == owner))


def look(connection, first, second):
    return connection.execute(select(boards_).where(boards_.c.id.in_([first, second])).order_by(boards_.c.id)).all()


def post(connection, owner, board, value):
    mine = connection.execute(select(notes_.c["items"]).where(notes_.c.owner == owner)).scalar_one()
    append = " " + str(value)
    connection.execute(update(boards_).where(boards_.c.id == board).values(items=boards_.c["items"] + append))
    connection.execute(update(notes_).where(notes_.c.owner == owner).values(items=notes_.c["items"] + append))
    there = connection.execute(select(boards_.c["items"]).where(boards_.c.id == board)).scalar_one()
    if len(there.split()) % 7 == 0:
        raise ValueError("unlucky")
    connection.commit()
    return [mine, there]


def move(connection, source, target, value):
    with connection.begin():
        two = boards_.c.id.in_([source, target])
        connection.execute(update(boards_).where(two).values(items=boards_.c["items"] + " " + str(value)))
        return connection.execute(select(boards_).where(two).order_by(boards_.c.id)).all()


def paint(connection, person, colour):
    connection.execute(update(people_).where(people_.c.id == person).values(colour=colour))


def portrait(connection, person):
    row = connection.execute(select(people_.c.colour, people_.c.score).where(people_.c.id == person)).one()
    return [row.colour, row.score]


def praise(connection, fan, person):
    colour = connection.execute(select(people_.c.colour).where(people_.c.id == fan)).scalar_one()
    connection.execute(update(people_).where(people_.c.id == person).values(score=people_.c.score + (1 + len(colour))))


def ranking(connection):
    return connection.execute(
        select(people_.c.id, people_.c.score).order_by(people_.c.score.desc(), people_.c.id)
    ).all()


def draw(connection, owner, label):
    return connection.execute(insert(tickets_).values(owner=owner, label=label)).inserted_primary_key[0]


def drawn(connection, owner):
    mine = select(tickets_.c.id, tickets_.c.label).where(tickets_.c.owner == owner)
    return connection.execute(mine.order_by(tickets_.c.id)).all()


def award(connection, owner):
    latest = select(tickets_.c.id, tickets_.c.label).where(tickets_.c.owner == owner).order_by(tickets_.c.id.desc())
    for ticket in connection.execute(latest.limit(2)).all():
        connection.execute(insert(prizes_), {"ticket": ticket.id, "label": ticket.label})


def prizes(connection):
    return connection.execute(select(prizes_).order_by(prizes_.c.id)).all()


def bid(connection, user, item, amount):
    made = insert(bids_).values(bidder=user, item=item, amount=amount)
    return connection.execute(made.returning(bids_.c.id)).scalar_one()


def bids_by(connection, user):
    return connection.execute(
        select(bids_.c.id, bids_.c.amount).where(bids_.c.bidder == user).order_by(bids_.c.id)
    ).all()


def bids_on(connection, item):
    return connection.execute(select(bids_.c.id, bids_.c.amount).where(bids_.c.item == item).order_by(bids_.c.id)).all()
