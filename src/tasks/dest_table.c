#include "tasks/dest_table.h"

#include "engine/stored.h"

static const CatalogColumn *column_of(const PipelinePlan *plan, const CatalogTable *table, const char *name)
{
    return table == NULL ? NULL : stored_column(plan, table, name);
}

static void add_field(Schema *schema, const char *name, Type type)
{
    schema->fields[schema->count++] = (Field){.name = name, .type = type, .nullable = true};
}

void dest_table_pair(const PipelinePlan *plan, const CatalogTable *table, const Schema *schema, Arena *arena,
                     Schema *found, Schema *stored)
{
    *found = (Schema){.fields = arena_array(arena, Field, schema->count + DEST_TABLE_OWN)};
    *stored = (Schema){.fields = arena_array(arena, Field, schema->count + DEST_TABLE_OWN)};
    for (int i = 0; i < schema->count; i++) {
        const Field *field = &schema->fields[i];
        const CatalogColumn *column = column_of(plan, table, field->name);
        if (column == NULL && table != NULL) continue;
        found->fields[found->count++] = *field;
        if (column == NULL)
            add_field(stored, field->name, field->type);
        else
            add_field(stored, column->name, column->type);
    }
}

int dest_table_own(const PipelinePlan *plan, const CatalogTable *table, const char *name, TypeId type, Schema *stored)
{
    const CatalogColumn *column = column_of(plan, table, name);
    if (column == NULL || column->type.id != type) return -1;
    add_field(stored, column->name, column->type);
    return stored->count - 1;
}
