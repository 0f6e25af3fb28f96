#!/usr/bin/env python3
"""Enforces the layer rule by reading the #include lines under a source directory.

    tools/check-layers.py [src]

    base <- data <- {config, catalog} <- plan; connector.h sees base, data, catalog; a room (connectors/NAME) sees only
    connector.h, base, data, catalog, its own folder and its client library; state may see config, catalog and
    connector.h; engine sees connector.h, plan, state.h and config, never a room; tasks use engine; report, cmd and serve
    sit on top. Only connectors/registry.c names rooms.

Prints one line a fault, "file:line: what", and exits 1 when there is any.
"""

import re
import sys
from pathlib import Path

CONTRACT = "connectors/connector.h"
STATE_DOOR = "state/state.h"

# What a layer may include besides itself: folders, or single headers.
LAYERS = {
    "base": [],
    "data": ["base"],
    "config": ["base", "data"],
    "catalog": ["base", "data"],
    "connectors": ["base", "data", "catalog"],
    "plan": ["base", "data", "config", "catalog", CONTRACT],
    "state": ["base", "data", "config", "catalog", CONTRACT],
    "engine": ["base", "data", "config", "catalog", "plan", CONTRACT, STATE_DOOR],
}
LAYERS["tasks"] = LAYERS["engine"] + ["engine"]
LAYERS["report"] = LAYERS["tasks"] + ["tasks"]
LAYERS["serve"] = LAYERS["report"] + ["report"]
LAYERS["console"] = LAYERS["serve"] + ["serve"]
LAYERS["cmd"] = LAYERS["serve"] + ["serve", "console"]
LAYERS["main"] = ["base", "cmd"]

# Client libraries and the only places that may know them. A header that is not listed is free.
CLIENTS = {
    "libpq-fe.h": ["connectors/postgres", "state"],
    "sqlite3.h": ["connectors/sqlite", "state"],
    "duckdb.h": ["connectors/duckdb", "connectors/files"],
    "mysql.h": ["connectors/mysql"],
    "mariadb_rpl.h": ["connectors/mysql"],
    "curl/curl.h": ["connectors", "tasks", "serve"],
    "yaml.h": ["config"],
    "microhttpd.h": ["serve"],
}

# Asks each library for its version, and nothing else of it.
VERSIONS = "cmd/cmd_version.c"

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def place_of(path):
    """The layer and, inside connectors/, the room of a path relative to the source directory."""
    parts = Path(path).parts
    if len(parts) == 1:
        return "main", None
    if parts[0] == "connectors" and len(parts) > 2:
        return "room", parts[1]
    return parts[0], None


def covers(allowed, included):
    return included == allowed or included.startswith(allowed + "/")


def fault_of_own(source, included):
    """What is wrong with an include of the project's own header, or None."""
    layer, room = place_of(source)
    target_layer, target_room = place_of(included)
    if target_room is not None and room != target_room and source != "connectors/registry.c":
        return f"{included} belongs to the room {target_room}; only connectors/registry.c names rooms"
    if layer == "room":
        if target_room == room or included == CONTRACT:
            return None
        allowed = LAYERS["connectors"]
        named = f"a room (connectors/{room})"
    else:
        if layer not in LAYERS:
            return f"{layer}/ is not a known layer; add it to tools/check-layers.py"
        if target_layer == layer or (target_room is not None and source == "connectors/registry.c"):
            return None
        allowed = LAYERS[layer]
        named = layer
    if any(covers(one, included) for one in allowed):
        return None
    may = ", ".join(allowed) if allowed else "nothing but its own folder"
    return f"{named} may not include {included} (it may see: {may})"


def fault_of_client(source, header):
    homes = CLIENTS.get(header)
    if homes is None or source == VERSIONS or any(covers(home, source) for home in homes):
        return None
    return f"<{header}> is a client library of {', '.join(homes)} only"


def check(root):
    faults = []
    for path in sorted(p for p in root.rglob("*") if p.suffix in (".c", ".h", ".def")):
        source = path.relative_to(root).as_posix()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            own, system = found.groups()
            if system is not None or own in CLIENTS:
                fault = fault_of_client(source, system or own)
            elif not (root / own).is_file():
                fault = f'"{own}" is not a path from {root.as_posix()}/'
            else:
                fault = fault_of_own(source, own)
            if fault:
                faults.append(f"{path.as_posix()}:{number}: {fault}")
    return faults


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "src")
    if not root.is_dir():
        print(f"{root}: not a directory", file=sys.stderr)
        return 2
    faults = check(root)
    print("\n".join(faults) if faults else f"{root}: the layers hold")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
