/* doctor: checks each connection and pipeline, one line a check. What cannot be reached is a red line, not the end. */
#ifndef OPENETL_TASKS_DOCTOR_H
#define OPENETL_TASKS_DOCTOR_H

#include "config/resource.h"
#include "plan/plan.h"

typedef struct DoctorLine {
    bool ok;
    const char *kind; /* of the resource, or "State" */
    const char *name;
    const char *check;
    const char *detail;
    const char *fix; /* when not ok; may be NULL */
} DoctorLine;

typedef struct DoctorReport {
    DoctorLine *items;
    int count, capacity;
    int red;
} DoctorReport;

typedef struct DoctorSpec {
    const char *workspace;
    const char *state_place;  /* the open state store, without its password */
    const ResourceSet *given; /* what to check, and what names refer to first */
    const ResourceSet *stored;
    const char *const *names; /* only these; name_count 0: all given, or all stored where none is given */
    int name_count;
    Stop *stop;
} DoctorSpec;

/* False only when a name is unknown (RESOURCE_NOT_FOUND) or the work was stopped. */
bool doctor_run(const DoctorSpec *spec, Arena *arena, DoctorReport *report, Err *err);

#endif
