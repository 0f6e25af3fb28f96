#include "tasks/alerts.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/wait.h"
#include "config/secrets.h"
#include "tasks/alerts_send.h"

/* A day between two reminders, five minutes after a failure. A round of telling ends after five seconds, whatever is left
 * to tell: runs wait for it. */
static const int64_t AGAIN_US = INT64_C(86400000000), RETRY_US = INT64_C(300000000), ROUND_US = 5000000;
static const int64_t POST_US = 3000000, COMMAND_US = 5000000, LEAST_US = 200000, WATCH_US = 30000000;

/* The kinds a look decides on; others are left to whoever raised them. */
static const char *const KINDS[] = {"run_failed", "run_lost", "run_hung", "run_missed", "full_refresh_slow"};

/* ---- looking ---- */

static bool is_known(const char *kind)
{
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (strcmp(KINDS[i], kind) == 0) return true;
    return false;
}

static const AlertRecord *find_same(const AlertList *list, const AlertRecord *alert)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->items[i].kind, alert->kind) == 0 && strcmp(list->items[i].stream, alert->stream) == 0)
            return &list->items[i];
    return NULL;
}

bool alerts_standing(State *state, const AlertFacts *facts, int64_t now_us, Arena *arena, AlertList *list, Err *err)
{
    AlertList found, stored;
    if (!state_alerts(state, facts->pipeline, arena, &stored, err)) return false;
    alerts_find(facts, now_us, arena, &found);
    *list = (AlertList){.items = arena_array(arena, AlertRecord, found.count + stored.count + 1)};
    for (int i = 0; i < stored.count; i++)
        if (stored.items[i].resolved_at_us == 0 && !is_known(stored.items[i].kind))
            list->items[list->count++] = stored.items[i];
    for (int i = 0; i < found.count; i++) {
        const AlertRecord *before = find_same(&stored, &found.items[i]);
        if (before != NULL && before->resolved_at_us == 0) found.items[i].since_us = before->since_us;
        list->items[list->count++] = found.items[i];
    }
    return true;
}

static bool store_found(State *state, const AlertList *found, const AlertList *stored, Err *err)
{
    for (int i = 0; i < found->count; i++) {
        const AlertRecord *alert = &found->items[i], *before = find_same(stored, alert);
        bool known = before != NULL && before->resolved_at_us == 0 && strcmp(before->message, alert->message) == 0 &&
                     strcmp(before->fix, alert->fix) == 0;
        if (!known && !state_alert_raise(state, alert, err)) return false;
    }
    for (int i = 0; i < stored->count; i++) {
        const AlertRecord *alert = &stored->items[i];
        bool over = alert->resolved_at_us == 0 && is_known(alert->kind) && find_same(found, alert) == NULL;
        if (over && !state_alert_resolve(state, alert, err)) return false;
    }
    return true;
}

static bool look_at(State *state, const Resource *pipeline, Arena *arena, Err *err)
{
    AlertFacts facts;
    AlertList found, stored;
    int64_t now_us;
    if (!alerts_facts(state, pipeline, arena, &facts, err) || !state_clock(state, &now_us, err)) return false;
    alerts_find(&facts, now_us, arena, &found);
    return state_alerts(state, pipeline->name, arena, &stored, err) && store_found(state, &found, &stored, err);
}

bool alerts_look(State *state, const ResourceSet *set, Err *err)
{
    Arena arena;
    arena_init(&arena);
    bool ok = true;
    for (int i = 0; ok && i < set->count; i++) {
        if (set->items[i].kind != RESOURCE_PIPELINE) continue;
        ok = look_at(state, &set->items[i], &arena, err);
        arena_reset(&arena);
    }
    arena_release(&arena);
    return ok;
}

/* ---- telling ---- */

typedef struct Teller {
    State *state;
    const AlertTelling *telling;
    const AlertsResource *alerts;
    const char *url;  /* the webhook's, resolved; a secret; NULL: none */
    int64_t until_us; /* monotonic */
    Arena *arena;
    bool webhook_down, command_down; /* not asked again in this round */
} Teller;

typedef bool Tell(Teller *teller, const AlertRecord *alert, const char *event, char why[ALERT_WHY_BYTES]);

static void set_text(json_t *json, const char *field, const char *text)
{
    json_object_set_new(json, field, text == NULL ? json_null() : json_text(text));
}

static void set_time(json_t *json, const char *field, int64_t us)
{
    char text[40];
    clock_format(us, text, sizeof text);
    json_object_set_new(json, field, us == 0 ? json_null() : json_string(text));
}

/* "text" is what chat systems show of a message. */
static const char *as_json(const Teller *teller, const AlertRecord *alert, const char *event)
{
    json_t *json = json_object();
    const char *stream = alert->stream[0] == '\0' ? NULL : alert->stream;
    set_text(json, "event", event);
    set_text(json, "kind", alert->kind);
    set_text(json, "workspace", teller->telling->workspace);
    set_text(json, "pipeline", alert->pipeline);
    set_text(json, "stream", stream);
    set_text(json, "message", alert->message);
    set_text(json, "fix", alert->fix);
    set_time(json, "since", alert->since_us);
    set_time(json, "resolved_at", alert->resolved_at_us);
    set_text(json, "text",
             arena_printf(teller->arena, "openetl: %s%s%s: %s%s: %s", alert->pipeline, stream == NULL ? "" : ".",
                          alert->stream, alert->resolved_at_us == 0 ? "" : "resolved: ", alert->kind, alert->message));
    char *text = json_dumps(json, JSON_COMPACT);
    if (text == NULL) BUG("an alert cannot be written as JSON");
    json_decref(json);
    const char *copy = arena_strdup(teller->arena, text);
    free(text);
    return copy;
}

static bool tell_log(Teller *teller, const AlertRecord *alert, const char *event, char why[ALERT_WHY_BYTES])
{
    (void)event;
    (void)why;
    const char *said = teller->telling->said;
    const char *dot = alert->stream[0] == '\0' ? "" : ".";
    if (alert->resolved_at_us != 0)
        log_info("alert resolved: %s%s%s: %s: %s", alert->pipeline, dot, alert->stream, alert->kind, alert->message);
    else if (said == NULL || strcmp(said, alert->pipeline) != 0 || strcmp(alert->kind, "run_failed") != 0)
        log_warn("alert: %s%s%s: %s: %s (fix: %s)", alert->pipeline, dot, alert->stream, alert->kind, alert->message,
                 alert->fix);
    return true;
}

static int64_t time_left(const Teller *teller, int64_t most_us)
{
    int64_t left = teller->until_us - clock_mono_us();
    return left < most_us ? left : most_us;
}

static bool tell_webhook(Teller *teller, const AlertRecord *alert, const char *event, char why[ALERT_WHY_BYTES])
{
    return alert_post(teller->url, as_json(teller, alert, event), time_left(teller, POST_US), why);
}

static bool tell_command(Teller *teller, const AlertRecord *alert, const char *event, char why[ALERT_WHY_BYTES])
{
    return alert_run(teller->alerts, as_json(teller, alert, event), time_left(teller, COMMAND_US), why);
}

/* A channel that failed, or took the time there was, gets no more in this round: the next alert would fare no better.
 * down NULL: one that neither fails nor takes time. */
static bool tell_by(Teller *teller, const AlertRecord *alert, const char *channel, Tell *tell, bool *down, Err *err)
{
    bool claimed, before;
    char why[ALERT_WHY_BYTES] = "";
    if (down != NULL && (*down || time_left(teller, AGAIN_US) < LEAST_US)) return true;
    if (!state_alert_claim(teller->state, alert, channel, AGAIN_US, &claimed, &before, err)) return false;
    if (!claimed) return true;
    const char *event = alert->resolved_at_us != 0 ? "resolved" : before ? "repeated" : "raised";
    bool told = tell(teller, alert, event, why);
    if (!told && down != NULL) {
        *down = true;
        log_warn("the %s of %s did not take the alert %s: %s; it is tried again in 5m", channel, alert->pipeline,
                 alert->kind, why);
    }
    return state_alert_told(teller->state, alert, channel, told, RETRY_US, err);
}

static bool tell_alert(Teller *teller, const AlertRecord *alert, Err *err)
{
    return tell_by(teller, alert, "log", tell_log, NULL, err) &&
           (teller->url == NULL || tell_by(teller, alert, "webhook", tell_webhook, &teller->webhook_down, err)) &&
           (teller->alerts->command_count == 0 ||
            tell_by(teller, alert, "command", tell_command, &teller->command_down, err));
}

/* Before anything is claimed: a process whose environment lacks the URL leaves the telling to those that have it. */
static void find_url(Teller *teller, const Resource *pipeline)
{
    Err err;
    if (teller->alerts->webhook == NULL || secret_resolve(teller->alerts->webhook, &teller->alerts->webhook_place,
                                                          "spec.alerts.webhook", teller->arena, &teller->url, &err))
        return;
    teller->url = NULL;
    log_warn("the webhook of %s cannot be told of its alerts: %s", pipeline->name, err.message);
}

static bool tell_pipeline(State *state, const AlertTelling *telling, const Resource *pipeline, int64_t until_us,
                          Arena *arena, Err *err)
{
    AlertList list;
    Teller teller = {
        .state = state, .telling = telling, .alerts = &pipeline->pipeline.alerts, .until_us = until_us, .arena = arena};
    if (!state_alerts(state, pipeline->name, arena, &list, err)) return false;
    if (list.count > 0) find_url(&teller, pipeline);
    for (int i = 0; i < list.count; i++)
        if (!tell_alert(&teller, &list.items[i], err)) return false;
    return true;
}

bool alerts_tell(State *state, const AlertTelling *telling, Err *err)
{
    const ResourceSet *set = telling->set;
    Arena arena;
    arena_init(&arena);
    int64_t until_us = clock_mono_us() + ROUND_US;
    bool ok = true;
    for (int i = 0; ok && i < set->count; i++) {
        if (set->items[i].kind != RESOURCE_PIPELINE) continue;
        ok = tell_pipeline(state, telling, &set->items[i], until_us, &arena, err);
        arena_reset(&arena);
    }
    arena_release(&arena);
    return ok;
}

/* ---- watching ---- */

struct AlertWatch {
    State *state;
    AlertTelling telling;
    int64_t period_us;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool ending;
};

/* Often enough for the shortest patience with a run that hangs. */
static int64_t watch_period_us(const ResourceSet *set)
{
    int64_t period_us = WATCH_US;
    for (int i = 0; i < set->count; i++) {
        if (set->items[i].kind != RESOURCE_PIPELINE) continue;
        int64_t half = set->items[i].pipeline.alerts.hung_us / 2;
        if (half < period_us) period_us = half;
    }
    return period_us;
}

/* Whether it goes on. */
static bool wait_period(AlertWatch *watch)
{
    int64_t until_us = clock_mono_us() + watch->period_us;
    pthread_mutex_lock(&watch->lock);
    while (!watch->ending && wait_until(&watch->wake, &watch->lock, until_us)) {
    }
    bool goes_on = !watch->ending;
    pthread_mutex_unlock(&watch->lock);
    return goes_on;
}

static void *watch_main(void *context)
{
    AlertWatch *watch = context;
    Err err;
    bool ok = alerts_tell(watch->state, &watch->telling, &err);
    while (ok && wait_period(watch))
        ok = alerts_look(watch->state, watch->telling.set, &err) && alerts_tell(watch->state, &watch->telling, &err);
    if (!ok) log_warn("alerts are not watched any more: %s", err.message);
    return NULL;
}

static void free_watch(AlertWatch *watch)
{
    pthread_cond_destroy(&watch->wake);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

AlertWatch *alerts_watch(State *state, const ResourceSet *set, const char *workspace)
{
    AlertWatch *watch = mem_zero(sizeof *watch);
    *watch = (AlertWatch){
        .state = state, .telling = {.set = set, .workspace = workspace}, .period_us = watch_period_us(set)};
    pthread_mutex_init(&watch->lock, NULL);
    wait_init(&watch->wake);
    int failed = pthread_create(&watch->thread, NULL, watch_main, watch);
    if (failed == 0) return watch;
    log_warn("alerts are not watched during the run: %s", strerror(failed));
    free_watch(watch);
    return NULL;
}

void alerts_watch_stop(AlertWatch *watch)
{
    if (watch == NULL) return;
    pthread_mutex_lock(&watch->lock);
    watch->ending = true;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    free_watch(watch);
}
