#include "config/kinds.h"
#include "config/secrets.h"

#include <strings.h>

enum { COMMAND_MAX = 100 };

/* The value is never shown: a webhook's URL is its password. */
static bool read_webhook(const FieldSite *site, void *target, Err *err)
{
    AlertsResource *alerts = target;
    const Node *node = site->node;
    char field[PATH_TEXT_MAX];
    path_text(site->path, field);
    if (node->kind != NODE_TEXT || node->text[0] == '\0') {
        config_error(err, &node->place, site->path, "expected a URL (text)");
        err_fix(err, "for example webhook: \"${ALERT_URL}\", with the URL in the environment");
        return false;
    }
    if (!secret_check(node->text, &node->place, field, err)) return false;
    bool known = strncasecmp(node->text, "http://", 7) == 0 || strncasecmp(node->text, "https://", 8) == 0;
    if (!known && strncmp(node->text, "${", 2) != 0) {
        config_error(err, &node->place, site->path, "not a URL of http:// or https://");
        err_fix(err, "for example webhook: \"${ALERT_URL}\", with the URL in the environment");
        return false;
    }
    alerts->webhook = node->text;
    return true;
}

static bool refuse_placeholder(const FieldSite *site, Err *err)
{
    if (!secret_has_placeholder(site->node->text)) return true;
    config_error(err, &site->node->place, site->path,
                 "a placeholder (${…}) is not allowed in a command, whose arguments "
                 "everybody on the machine can see");
    err_fix(err, "let the program take the value from its environment, which is openetl's");
    return false;
}

static bool read_command(const FieldSite *site, void *target, Err *err)
{
    AlertsResource *alerts = target;
    const Node *list = site->node;
    if (list->kind != NODE_LIST) {
        field_wrong(site, "a list of a program and its arguments", err);
        err_fix(err, "for example command: [notify, --quiet]; for a shell: [sh, -c, \"…\"]");
        return false;
    }
    if (list->count == 0) return config_error(err, &list->place, site->path, "the list is empty");
    if (list->count > COMMAND_MAX)
        return config_error(err, &list->place, site->path, "the list holds more than %d words", COMMAND_MAX);
    alerts->command = arena_array(site->arena, const char *, list->count + 1);
    for (int i = 0; i < list->count; i++) {
        FieldPath step = {site->path, NULL, i};
        FieldSite item = {site->arena, list->items[i], &step};
        if (!field_text(&item, i == 0 ? "a program (text)" : "an argument (text)", &alerts->command[i], err) ||
            !refuse_placeholder(&item, err))
            return false;
    }
    alerts->command_count = list->count;
    return true;
}

static const FieldRule ALERTS_FIELDS[] = {
    {.name = "webhook", .kind = FIELD_OWN, .place = FIELD_AT(AlertsResource, webhook_place), .read = read_webhook},
    {.name = "command", .kind = FIELD_OWN, .read = read_command},
    {.name = "hung", .kind = FIELD_DURATION, .at = FIELD_AT(AlertsResource, hung_us), .least = 1000000},
    {.name = "late", .kind = FIELD_DURATION, .at = FIELD_AT(AlertsResource, late_us), .least = 1000000},
};
static const FieldTable ALERTS_TABLE = FIELD_TABLE(ALERTS_FIELDS);

bool alerts_read(const FieldSite *site, AlertsResource *alerts, Err *err)
{
    return fields_read(&ALERTS_TABLE, site, alerts, err);
}
