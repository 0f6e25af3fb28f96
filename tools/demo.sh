#!/usr/bin/env bash
# The demo: a shop of 100,000 orders in SQLite, synced to a DuckDB warehouse: plan, run, run again (nothing doubled), some
# rows updated, run, and a query of the result.
#   tools/demo.sh OPENETL DUCKDB-QUERY
set -euo pipefail

openetl=$(realpath "$1")
query=$(realpath "$2")
work=build/demo
rm -rf "$work"
mkdir -p "$work"
cd "$work"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
if [ -n "${NO_COLOR:-}" ] || [ ! -t 1 ]; then say() { printf '\n%s\n' "$*"; }; fi
run() { say "\$ openetl $*"; "$openetl" "$@"; }

say "A shop with 100,000 orders, in SQLite (shop.db)"
sqlite3 shop.db <<'SQL'
create table orders (
  id integer primary key,
  customer text not null,
  city text not null,
  amount decimal(10, 2) not null,
  updated_at timestamp not null
);
create index orders_updated_at on orders (updated_at);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000)
insert into orders
select i, 'customer ' || (i % 9973), case i % 4 when 0 then 'Berlin' when 1 then 'Lyon' when 2 then 'Porto' else 'Gdansk' end,
       (i * 37 % 100000) / 100.0, strftime('%Y-%m-%d %H:%M:%f', '2026-01-01', '+' || (i * 11) || ' seconds')
from n;
select count(*) || ' orders, ' || sum(amount) || ' in all' from orders;
SQL

cat > shop.yaml <<'YAML'
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: { name: shop-db }
spec:
  connector: sqlite
  config: { path: shop.db }
---
apiVersion: openetl.io/v1alpha1
kind: Connection
metadata: { name: warehouse }
spec:
  connector: duckdb
  config: { path: warehouse.duckdb }
---
apiVersion: openetl.io/v1alpha1
kind: Pipeline
metadata: { name: shop-orders }
spec:
  source:
    ref: shop-db
    streams:
      - name: orders
        sync: incremental
        cursor: updated_at
  destination: { ref: warehouse, namespace: shop, write: append }
YAML

run plan -f shop.yaml
run run -f shop.yaml
say "Once more: the rows at the highest updated_at are read again, and skipped"
run run shop-orders
say "500 orders change"
sqlite3 shop.db "update orders set amount = amount + 1, updated_at = strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 second') where id % 200 = 0;"
sleep 1
run run shop-orders
run runs
run checkpoints shop-orders
say "The warehouse, asked by a reader of its own"
"$query" warehouse.duckdb "
  select count(*) as rows, count(distinct _openetl_id) as versions, count(distinct id) as orders from shop.orders"
"$query" warehouse.duckdb "
  select city, count(*) as orders, sum(amount) as revenue
  from (select * from shop.orders qualify row_number() over (partition by id order by _openetl_seq desc) = 1)
  group by city order by city"
