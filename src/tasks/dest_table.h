/* The columns of a stream's table at its destination, beside those of the stream: what reconcile, audit and verify compare. The
 * table is found by engine/stored.h. */
#ifndef OPENETL_TASKS_DEST_TABLE_H
#define OPENETL_TASKS_DEST_TABLE_H

#include "plan/plan.h"

enum { DEST_TABLE_OWN = 6 };
/* The columns of `schema` that the table has: as they are in `schema`, and in its own names and types. A table that is NULL
 * has all of them, as they are. Both results have room for DEST_TABLE_OWN columns more. */
void dest_table_pair(const PipelinePlan *plan, const CatalogTable *table, const Schema *schema, Arena *arena,
                     Schema *found, Schema *stored);
/* Adds a column of ours, where the table has it with that type: its index in `stored`; else -1. */
int dest_table_own(const PipelinePlan *plan, const CatalogTable *table, const char *name, TypeId type, Schema *stored);

#endif
