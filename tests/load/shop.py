"""The tables of the load and the clients that write to them, at a given rate, each with ids of its own."""

import itertools
import random
import threading
import time

import psycopg

TABLES = {"orders": "now()", "lines": "now()", "ticks": "date_trunc('second', now())"}  # what stamps updated_at
KEYS = {"orders": "id", "lines": "id, part", "ticks": "id"}
ROWS = 50_000  # a table, before the load begins
WRITERS, LATE_WRITERS = 4, 2
OWNERS = WRITERS + LATE_WRITERS
MIX = {"update": 60, "insert": 25, "delete": 8, "ties": 1.5, "rolled back": 3}
KINDS = (*MIX, "late")


def create(url):
    with psycopg.connect(url, autocommit=True) as db:
        for name, key in KEYS.items():
            db.execute(
                f"create table {name} (id bigint, part int not null default 1, n int not null default 0, amount numeric(12, 2),"
                f" note text, tags text[], updated_at timestamptz not null, primary key ({key}))"
            )
            db.execute(f"create index on {name} (updated_at)")
            insert(db, name, f"generate_series(1, {ROWS})")
        db.execute("analyze")


def insert(db, table, ids, *arguments):
    return db.execute(
        f"insert into {table} (id, amount, note, tags, updated_at) select i, mod(i, 10000) / 100.0, 'note ' || i,"
        f" array[i::text, 'x'], {TABLES[table]} from {ids} i",
        arguments,
    ).rowcount


def update(db, table, ids):
    sql = f"update {table} set n = n + 1, amount = amount + 0.01, updated_at = {TABLES[table]} where id = any(%s)"
    return db.execute(sql, (ids,)).rowcount


class Ids:
    """The ids one client writes, of one table: those that are there, and the next new ones."""

    def __init__(self, owner):
        self.there = [i for i in range(1, ROWS + 1) if i % OWNERS == owner]
        first = next(i for i in itertools.count(ROWS + 1) if i % OWNERS == owner)
        self.numbers = itertools.count(first, OWNERS)

    def some(self, rng, count):
        return [rng.choice(self.there) for _ in range(count)]

    def new(self, count):
        return list(itertools.islice(self.numbers, count))

    def take(self, rng, count):
        """Ids to be deleted."""
        for _ in range(count):
            at = rng.randrange(len(self.there))
            self.there[at], self.there[-1] = self.there[-1], self.there[at]
            yield self.there.pop()


class Client(threading.Thread):
    """Writes `rate` rows a second until stopped; a failure is kept in `error`."""

    def __init__(self, url, owner, rate, deletes, stop):
        super().__init__(daemon=True)
        self.url, self.rate, self.stop = url, rate, stop
        self.rng = random.Random(owner)
        self.ids = {table: Ids(owner) for table in TABLES}
        self.mix = {kind: weight for kind, weight in MIX.items() if deletes or kind != "delete"}
        self.rows = dict.fromkeys(KINDS, 0)
        self.error = None

    def run(self):
        try:
            with psycopg.connect(self.url) as db:
                began = time.monotonic()
                while not self.stop.is_set():
                    self.transaction(db)
                    self.stop.wait(began + sum(self.rows.values()) / self.rate - time.monotonic())
        except Exception as error:  # told by the main thread
            self.error = error
            self.stop.set()

    def transaction(self, db):
        kind = self.rng.choices(list(self.mix), self.mix.values())[0]
        table = self.rng.choice(list(TABLES))
        ids, count = self.ids[table], self.rng.randint(1, 10)
        if kind == "insert":
            new = ids.new(count)
            done = insert(db, table, "unnest(%s::bigint[])", new)
            ids.there += new
        elif kind == "delete":
            done = db.execute(f"delete from {table} where id = any(%s)", (list(ids.take(self.rng, count)),)).rowcount
        else:
            done = update(db, table, ids.some(self.rng, 200 if kind == "ties" else count))
        db.rollback() if kind == "rolled back" else db.commit()
        self.rows[kind] += done


class LateClient(Client):
    """Stamps rows at the start of its transaction, and commits it seconds later."""

    def transaction(self, db):
        table = self.rng.choice(list(TABLES))
        ids, share = self.ids[table], max(1, int(self.rate))
        new = ids.new(share)
        done = update(db, table, ids.some(self.rng, share)) + insert(db, table, "unnest(%s::bigint[])", new)
        self.stop.wait(self.rng.uniform(0.3, 4))
        done += update(db, table, ids.some(self.rng, share))
        db.commit()
        ids.there += new
        self.rows["late"] += done


class Load:
    """All clients; nine rows of ten are written by those that commit at once."""

    def __init__(self, url, rate, deletes):
        self.stop = threading.Event()
        self.clients = [Client(url, i, rate * 0.9 / WRITERS, deletes, self.stop) for i in range(WRITERS)]
        self.clients += [LateClient(url, WRITERS + i, rate * 0.1 / LATE_WRITERS, deletes, self.stop) for i in range(LATE_WRITERS)]

    def start(self):
        self.began = time.monotonic()
        for client in self.clients:
            client.start()
        return self

    def end(self):
        self.stop.set()
        for client in self.clients:
            client.join()
            if client.error is not None:
                raise client.error
        self.seconds = time.monotonic() - self.began
        self.rows = {kind: sum(client.rows[kind] for client in self.clients) for kind in KINDS}
        return self
