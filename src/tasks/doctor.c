#include "tasks/doctor.h"

#include "config/suggest.h"

typedef struct Doctor {
    const DoctorSpec *spec;
    Arena *arena;
    DoctorReport *report;
} Doctor;

static void add_line(Doctor *doctor, DoctorLine line)
{
    DoctorReport *report = doctor->report;
    if (report->count == report->capacity) {
        int capacity = report->capacity == 0 ? 16 : 2 * report->capacity;
        DoctorLine *items = arena_array(doctor->arena, DoctorLine, capacity);
        if (report->count > 0) memcpy(items, report->items, sizeof *items * (size_t)report->count);
        report->items = items;
        report->capacity = capacity;
    }
    report->red += !line.ok;
    report->items[report->count++] = line;
}

static void add_error(Doctor *doctor, const Resource *resource, const char *check, const Err *err)
{
    add_line(doctor, (DoctorLine){
                         .kind = resource_kind_name(resource->kind),
                         .name = resource->name,
                         .check = check,
                         .detail = arena_printf(doctor->arena, "%s: %s", err_word(err->code), err->message),
                         .fix = err->fix[0] == '\0' ? NULL : arena_strdup(doctor->arena, err->fix),
                     });
}

static void add_checks(Doctor *doctor, const Resource *resource, const CheckList *list)
{
    for (int i = 0; i < list->count; i++)
        add_line(doctor, (DoctorLine){
                             .ok = list->items[i].ok,
                             .kind = resource_kind_name(resource->kind),
                             .name = resource->name,
                             .check = list->items[i].name,
                             .detail = list->items[i].detail,
                             .fix = list->items[i].fix,
                         });
}

/* ---- connections ---- */

/* Which sides of pipelines a connection stands on. */
typedef struct Roles {
    bool source, destination;
} Roles;

static void note_roles(const ResourceSet *set, const char *connection, Roles *roles)
{
    for (int i = 0; i < set->count; i++) {
        if (set->items[i].kind != RESOURCE_PIPELINE) continue;
        roles->source |= strcmp(set->items[i].pipeline.source, connection) == 0;
        roles->destination |= strcmp(set->items[i].pipeline.destination, connection) == 0;
    }
}

static void check_role(Doctor *doctor, const Resource *resource, const Connector *connector,
                       const ConnectorConfig *config, SessionRole role)
{
    OpenSpec open = {
        .config = config,
        .role = role,
        .read_only = true,
        .application = "openetl doctor",
        .stop = doctor->spec->stop,
    };
    Err err;
    Session *session;
    if (!connector->ops->open(&open, &session, &err)) {
        add_error(doctor, resource, "connect", &err);
        return;
    }
    CheckList list = {.arena = doctor->arena};
    bool asked = connector->ops->checks(session, role, &list, &err);
    add_checks(doctor, resource, &list);
    if (!asked) add_error(doctor, resource, "checks", &err);
    connector->ops->close(session);
}

static void check_connection(Doctor *doctor, const Resource *resource)
{
    const Connector *connector;
    ConnectorConfig config;
    Err err;
    if (!connection_resolve(resource, doctor->arena, &connector, &config, &err)) {
        add_error(doctor, resource, "config", &err);
        return;
    }
    Roles roles = {0};
    note_roles(doctor->spec->given, resource->name, &roles);
    note_roles(doctor->spec->stored, resource->name, &roles);
    if (!roles.source && !roles.destination) roles.source = connector->source != NULL;
    if (roles.source && connector->source != NULL) check_role(doctor, resource, connector, &config, ROLE_SOURCE);
    if ((roles.destination || connector->source == NULL) && connector->destination != NULL)
        check_role(doctor, resource, connector, &config, ROLE_DESTINATION);
}

/* ---- pipelines ---- */

static Guarantee weakest(const PipelinePlan *plan)
{
    Guarantee least = EXACTLY_ONCE;
    for (int i = 0; i < plan->stream_count; i++)
        if (plan->streams[i].decision.guarantee < least) least = plan->streams[i].decision.guarantee;
    return least;
}

/* What the source's log needs for the pipeline's cdc streams. */
static void check_log(Doctor *doctor, const Resource *resource, const PipelinePlan *plan)
{
    const LogOps *ops = plan->source_connector->source->log;
    LogSpec spec = plan_log_spec(plan, doctor->arena);
    OpenSpec open = {.config = &plan->source_config,
                     .role = ROLE_SOURCE,
                     .read_only = true,
                     .application = "openetl doctor",
                     .stop = doctor->spec->stop};
    CheckList list = {.arena = doctor->arena};
    Session *session;
    Err err;
    if (ops == NULL || ops->checks == NULL || spec.count == 0) return;
    if (!plan->source_connector->ops->open(&open, &session, &err)) {
        add_error(doctor, resource, "log", &err);
        return;
    }
    bool asked = ops->checks(session, &spec, &list, &err);
    add_checks(doctor, resource, &list);
    if (!asked) add_error(doctor, resource, "log", &err);
    plan->source_connector->ops->close(session);
}

static void check_pipeline(Doctor *doctor, const Resource *resource)
{
    PlanInput input = {
        .workspace = doctor->spec->workspace,
        .given = doctor->spec->given,
        .stored = doctor->spec->stored,
        .wait_us = PLAN_DONT_WAIT,
        .stop = doctor->spec->stop,
    };
    PipelinePlan plan = {0};
    Err err;
    if (!plan_pipeline(&input, resource, doctor->arena, &plan, &err)) {
        add_error(doctor, resource, "plan", &err);
        return;
    }
    DoctorLine line = {.kind = resource_kind_name(resource->kind), .name = resource->name, .check = "plan"};
    for (int i = 0; i < plan.problem_count; i++) {
        line.detail = plan.problems[i];
        line.fix = "change the pipeline; openetl plan shows what each stream gets and why";
        add_line(doctor, line);
    }
    if (plan.problem_count > 0) return;
    line.ok = true;
    line.detail = arena_printf(doctor->arena, "%d stream%s, %s%s%s", plan.stream_count,
                               plan.stream_count == 1 ? "" : "s", guarantee_name(weakest(&plan)),
                               plan.stream_count > 1 && weakest(&plan) < EXACTLY_ONCE ? " or better" : "",
                               plan.warning_count > 0 ? "; openetl plan shows warnings" : "");
    add_line(doctor, line);
    check_log(doctor, resource, &plan);
}

/* ---- what to check ---- */

static bool is_wanted(const DoctorSpec *spec, const char *name)
{
    if (spec->name_count == 0) return true;
    for (int i = 0; i < spec->name_count; i++)
        if (strcmp(spec->names[i], name) == 0) return true;
    return false;
}

static bool has_name(const ResourceSet *set, const char *name)
{
    for (int i = 0; i < set->count; i++)
        if (strcmp(set->items[i].name, name) == 0) return true;
    return false;
}

static bool names_known(const Doctor *doctor, Err *err)
{
    const DoctorSpec *spec = doctor->spec;
    for (int i = 0; i < spec->name_count; i++) {
        if (has_name(spec->given, spec->names[i]) || has_name(spec->stored, spec->names[i])) continue;
        int count = 0;
        const char **known = arena_array(doctor->arena, const char *, spec->given->count + spec->stored->count + 1);
        for (int j = 0; j < spec->given->count; j++)
            known[count++] = spec->given->items[j].name;
        for (int j = 0; j < spec->stored->count; j++)
            known[count++] = spec->stored->items[j].name;
        const char *near = suggest_name(spec->names[i], known, count);
        err_set(err, ERR_RESOURCE_NOT_FOUND, "there is no connection or pipeline \"%s\"", spec->names[i]);
        if (near != NULL)
            err_fix(err, "did you mean %s?", near);
        else
            err_fix(err, "openetl doctor without a name checks all; -f FILE gives resources that are not stored");
        return false;
    }
    return true;
}

static bool check_set(Doctor *doctor, const ResourceSet *set, const ResourceSet *shadowed_by, ResourceKind kind,
                      Err *err)
{
    for (int i = 0; i < set->count; i++) {
        const Resource *resource = &set->items[i];
        if (resource->kind != kind || !is_wanted(doctor->spec, resource->name)) continue;
        if (shadowed_by != NULL && resource_find(shadowed_by, kind, resource->name) != NULL) continue;
        if (doctor->spec->stop != NULL && stop_asked(doctor->spec->stop))
            return err_set(err, ERR_STOPPED, "stopped by a signal before every check was made");
        if (kind == RESOURCE_CONNECTION)
            check_connection(doctor, resource);
        else
            check_pipeline(doctor, resource);
    }
    return true;
}

bool doctor_run(const DoctorSpec *spec, Arena *arena, DoctorReport *report, Err *err)
{
    *report = (DoctorReport){0};
    Doctor doctor = {.spec = spec, .arena = arena, .report = report};
    if (!names_known(&doctor, err)) return false;
    if (spec->name_count == 0)
        add_line(&doctor, (DoctorLine){
                              .ok = true,
                              .kind = "State",
                              .name = "state",
                              .check = "open",
                              .detail = spec->state_place,
                          });
    /* a name may mean a stored resource also where files are given; without names the files alone are meant */
    bool stored_too = spec->given->count == 0 || spec->name_count > 0;
    for (int kind = 0; kind < RESOURCE_KIND_COUNT; kind++) {
        if (!check_set(&doctor, spec->given, NULL, (ResourceKind)kind, err)) return false;
        if (stored_too && !check_set(&doctor, spec->stored, spec->given, (ResourceKind)kind, err)) return false;
    }
    return true;
}
