/* The ways an alert leaves the program. Both block for `limit_us` at most. */
#ifndef OPENETL_TASKS_ALERTS_SEND_H
#define OPENETL_TASKS_ALERTS_SEND_H

#include "base/err.h"
#include "config/resource.h"

enum { ALERT_WHY_BYTES = 200 };

/* POSTs the text as JSON. False with a reason that holds nothing of the URL, which is as secret as a password; an answer
 * other than 2xx is a failure. Redirects are not followed. */
bool alert_post(const char *url, const char *json, int64_t limit_us, char why[ALERT_WHY_BYTES]);
/* Runs the program without a shell, the text on its standard input; what it prints is logged, the first 4 KiB. It is
 * killed with all it started when its time is over; an exit code other than 0 is a failure. */
bool alert_run(const AlertsResource *alerts, const char *json, int64_t limit_us, char why[ALERT_WHY_BYTES]);

#endif
