/* What plan, apply and run -f share: reading the files, planning, refusing, storing. */
#ifndef OPENETL_CMD_PLANNING_H
#define OPENETL_CMD_PLANNING_H

#include "cmd/common.h"
#include "plan/plan.h"

typedef struct Planning {
    State *state;
    ResourceSet given, stored;
    Plan plan;
} Planning;

/* Opens the state store, reads the files of -f and the stored resources. */
bool planning_open(Invocation *invocation, Planning *planning, Err *err);
/* Plans, and stores the catalogs of the tables it read. */
bool planning_make(Invocation *invocation, Planning *planning, Stop *stop, Err *err);
/* Stores the resources and what each stream was promised. */
bool planning_store(Planning *planning, Invocation *invocation, Err *err);
void planning_print(Invocation *invocation, const Planning *planning);
/* Prints the plan and, on standard error, that it has problems, "so <what>"; returns the exit code. */
int planning_refuse(Invocation *invocation, const Planning *planning, const char *what);
/* "workspaces/default/pipelines/shop-orders" */
const char *resource_path(const char *workspace, const Resource *resource, Arena *arena);

#endif
