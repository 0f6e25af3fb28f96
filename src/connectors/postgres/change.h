/* A change of the log to rows of its stream's batch; what comes of which change is in connectors/log.h. */
#ifndef OPENETL_CONNECTORS_POSTGRES_CHANGE_H
#define OPENETL_CONNECTORS_POSTGRES_CHANGE_H

#include "connectors/postgres/shape.h"

typedef struct PgChange {
    const PgShape *shape;
    const ReadSpec *spec;
    PgDatum *old_row, *new_row; /* scratch */
    int capacity;
    uint64_t commit_lsn;
    uint64_t index; /* of the change in its transaction */
} PgChange;

void change_release(PgChange *change);
/* Appends an INSERT, UPDATE or DELETE. After a failure the builder holds only whole rows. */
bool change_append(PgChange *change, const PgMessage *message, BatchBuilder *builder, Err *err);
void change_truncate(const PgChange *change, BatchBuilder *builder);

#endif
