"""dlt with ConnectorX: one table from PostgreSQL to DuckDB or PostgreSQL.
drive_dlt.py WORKDIR SOURCE_URL TABLE duckdb:PATH|postgresql://… replace|merge [CURSOR [LAG]]"""

import os
import sys

workdir, source_url, table, destination_url, disposition, *more = sys.argv[1:]
os.environ.update(
    DLT_DATA_DIR=workdir,
    RUNTIME__DLTHUB_TELEMETRY="false",
    RUNTIME__LOG_LEVEL="WARNING",
    # dlt's page on performance: as many workers as cores, larger buffers and files.
    EXTRACT__WORKERS="2",
    NORMALIZE__WORKERS="2",
    LOAD__WORKERS="2",
    DATA_WRITER__BUFFER_MAX_ITEMS="100000",
    DATA_WRITER__FILE_MAX_ITEMS="1000000",
)

import dlt  # noqa: E402
from dlt.sources.sql_database import sql_table  # noqa: E402

if destination_url.startswith("duckdb:"):
    destination, file_format = dlt.destinations.duckdb(destination_url.removeprefix("duckdb:")), "parquet"
else:
    # CSV goes in by COPY.
    destination, file_format = dlt.destinations.postgres(destination_url), "csv"

options = {}
if more:
    options["incremental"] = dlt.sources.incremental(more[0], lag=float(more[1]) if len(more) > 1 else None, primary_key=())
if disposition == "merge":
    options["primary_key"] = "id"
resource = sql_table(
    credentials=source_url,
    schema="bench",
    table=table,
    backend="connectorx",
    chunk_size=100_000,
    backend_kwargs={"return_type": "arrow_stream"},
    reflection_level="full_with_precision",
    write_disposition=disposition,
    **options,
)
pipeline = dlt.pipeline("bench", pipelines_dir=os.path.join(workdir, "pipelines"), destination=destination, dataset_name="bench")
info = pipeline.run(resource, loader_file_format=file_format)
info.raise_on_failed_jobs()
print(info)
