#include "state/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static bool read_small(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, out, size - 1);
    if (fd >= 0) close(fd);
    out[length < 0 ? 0 : length] = '\0';
    return length > 0;
}

/* The boot and the pid namespace: two containers on one kernel may share a host name and hold the same pids. */
static void machine(char *out, size_t size)
{
    char boot[64], space[64];
    if (!read_small("/proc/sys/kernel/random/boot_id", boot, sizeof boot)) boot[0] = '\0';
    boot[strcspn(boot, "\n")] = '\0';
    ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    space[length < 0 ? 0 : length] = '\0';
    snprintf(out, size, "%s/%s/", boot, space);
}

/* Field 3 (state) and 22 (start time, in ticks since boot) of /proc/PID/stat; the name in field 2 may hold blanks and
 * parentheses, so fields are counted from the last ')'. */
static bool read_stat(pid_t pid, char *status, unsigned long long *start)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    if (!read_small(path, text, sizeof text)) return false;
    const char *p = strrchr(text, ')');
    if (p == NULL || p[1] != ' ') return false;
    *status = p[2];
    p += 2;
    for (int field = 3; field < 22; field++) {
        p = strchr(p, ' ');
        if (p == NULL) return false;
        p++;
    }
    char *end;
    *start = strtoull(p, &end, 10);
    return end != p;
}

void process_start(pid_t pid, char *out, size_t size)
{
    char prefix[160], status;
    unsigned long long start = 0;
    machine(prefix, sizeof prefix);
    read_stat(pid, &status, &start);
    snprintf(out, size, "%s%llu", prefix, start);
}

void process_host(char *out, size_t size)
{
    if (gethostname(out, size) != 0) snprintf(out, size, "unknown");
    out[size - 1] = '\0';
}

bool process_dead(const char *host, int64_t pid, const char *start)
{
    char here[256], prefix[160], status;
    unsigned long long now_start;
    process_host(here, sizeof here);
    machine(prefix, sizeof prefix);
    if (host == NULL || start == NULL || pid <= 0 || pid > INT32_MAX || strcmp(host, here) != 0) return false;
    if (strncmp(start, prefix, strlen(prefix)) != 0) return false;
    if (kill((pid_t)pid, 0) != 0 && errno == ESRCH) return true;
    if (!read_stat((pid_t)pid, &status, &now_start)) return false;
    /* A zombie was killed and only waits for its parent to notice. */
    if (status == 'Z' || status == 'X') return true;
    unsigned long long held_start = strtoull(start + strlen(prefix), NULL, 10);
    return held_start != 0 && held_start != now_start;
}
