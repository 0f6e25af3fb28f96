"""What the results say about openetl's targets: per job and table, and of growth."""

FLOORS = {"nothing": ["floor: COPY to nothing"], "duckdb": ["floor: COPY to nothing", "floor: append to DuckDB"],
          "postgres": ["floor: COPY to COPY"]}
FLOORS_WITH_COLUMNS = {"duckdb": ["floor: COPY to nothing", "floor: append to DuckDB, three columns more"],
                       "postgres": ["floor: COPY to COPY, three columns more"]}
HAND = "hand-written SQL"
VARIANTS = ("openetl, one reader", "openetl, size m")
MIB = 2**20
OWN_MIB = 128
POOL_MIB = {"duckdb": 32, "merge-duckdb": 128, "dedupe-duckdb": 128}  # the pool is DuckDB's, set by the job size: on s
AHEAD, STATEMENT_S, EXPONENT = 1.5, 30, 1.05


class Results:
    def __init__(self, results):
        self.all = results
        self.cells = results["cells"]

    def groups(self):
        seen = dict.fromkeys((c["job"], c["table"]) for c in self.cells)
        return [(job, table, [c for c in self.cells if (c["job"], c["table"]) == (job, table)]) for job, table in seen]

    def cell(self, job, table, contender):
        """Its cell where it has a correct result, else None."""
        for c in self.cells:
            if (c["job"], c["table"], c["contender"]) == (job, table, contender) and c["status"] == "ok" and "median" in c:
                return c
        return None

    def wall(self, job, table, contender):
        cell = self.cell(job, table, contender)
        return cell and cell["median"]["wall_s"]

    def floor(self, job, table, names=FLOORS):
        """The slower of the job's floors, in seconds; the hand-written SQL for jobs that change rows."""
        walls = [self.wall(job, table, name) for name in names.get(job, [HAND] if names is FLOORS else [])]
        return None if not walls or None in walls else max(walls)


def is_openetl(cell):
    return cell["contender"].startswith("openetl")


def fastest_other(cells):
    """(name, seconds, is only a bound) of the fastest other tool; one that was stopped took at least so long."""
    others = [c for c in cells if not c["floor"] and not is_openetl(c)]
    found = [(c["contender"], c["median"]["wall_s"], False) for c in others if c["status"] == "ok" and "median" in c]
    found += [(c["contender"], c["bound"]["wall_s_over"], True) for c in others if "bound" in c]
    return min(found, key=lambda f: f[1], default=None)


class Target:
    """One limit at one place. `value` is None where there is no correct result to take it from."""

    def __init__(self, kind, place, limit, value, digits=2, over=False, note=""):
        self.kind, self.place, (self.how, self.limit) = kind, place, limit
        self.value, self.digits, self.over, self.note = value, digits, over, note

    @property
    def met(self):
        if self.value is None:
            return False
        return self.value >= self.limit if self.how == "at least" else self.value <= self.limit

    def shown(self):
        return "no correct result" if self.value is None else f"{'> ' if self.over else ''}{self.value:,.{self.digits}f}"


def distance(r, job, table, wall, names=FLOORS):
    """openetl's share of the floor's rows/s, or its time over the floor's."""
    floor = r.floor(job, table, names)
    if floor is None or wall is None:
        return None
    return floor / wall if job == "nothing" else wall / floor


DISTANCES = {
    "nothing": ("share of the floor's rows/s", ("at least", 0.9)),
    "duckdb": ("time over that of the slower floor, to DuckDB", ("at most", 1.25)),
    "postgres": ("time over that of COPY to COPY, to PostgreSQL", ("at most", 1.2)),
}
BY_HAND = ("time over that of the hand-written SQL", ("at most", 1.5))


def of_group(r, job, table, cells):
    """The targets of one job with one table, by what they are about."""
    place, mine = f"{job}, {table}", r.cell(job, table, "openetl")
    wall = mine and mine["median"]["wall_s"]
    kind, limit = DISTANCES.get(job, BY_HAND)
    found = {"distance": Target(kind, place, limit, distance(r, job, table, wall))}
    other, floor = fastest_other(cells), r.floor(job, table)
    if other:
        name, seconds, bound = other
        allowed = "" if floor is None or bound or seconds / floor >= AHEAD else f"the floor itself is at {seconds / floor:.2f}"
        found["ahead"] = Target("rows/s over those of the fastest other tool", place, ("at least", AHEAD), wall and seconds / wall, 2, bound, allowed)
    found["statement"] = Target("longest statement at the source, seconds", place, ("at most", STATEMENT_S),
                                mine and mine["median"]["source_statement_s"], 1)
    pool = POOL_MIB.get(job, 0)
    found["memory"] = Target(f"peak memory, MiB{', with DuckDB and its pool' if pool else ''}", place, ("at most", OWN_MIB + pool),
                             mine and mine["median"]["peak_bytes"] / MIB, 0)
    return found


def of_growth(growth):
    return [Target("exponent of time over rows", f"growth, {job}", ("at most", EXPONENT), g["exponent"]) for job, g in growth.items()]


def every(r):
    found = [t for job, table, cells in r.groups() for t in of_group(r, job, table, cells).values()]
    return found + of_growth(r.all.get("growth", {}))
