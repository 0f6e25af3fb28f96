#include "tasks/alerts_send.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_MAX = 4096, LOOK_MS = 50 };

extern char **environ;

/* ---- the webhook ---- */

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void curl_start(void)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) BUG("libcurl cannot start");
}

static size_t drop_answer(char *data, size_t size, size_t count, void *context)
{
    (void)data;
    (void)context;
    return size * count;
}

static void set_post(CURL *curl, const char *url, const char *json, int64_t limit_us, struct curl_slist *headers)
{
    curl_easy_setopt(curl, CURLOPT_URL, url);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "openetl/" OPENETL_VERSION);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, json);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop_answer);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
    curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L); /* a name server that hangs is not waited for at the end either */
#endif
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(limit_us / 1000));
}

bool alert_post(const char *url, const char *json, int64_t limit_us, char why[ALERT_WHY_BYTES])
{
    pthread_once(&curl_once, curl_start);
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (curl == NULL || headers == NULL) BUG("libcurl has no memory");
    set_post(curl, url, json, limit_us, headers);
    CURLcode code = curl_easy_perform(curl);
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    /* curl's own texts a code, not its messages, which name the host. */
    if (code != CURLE_OK)
        snprintf(why, ALERT_WHY_BYTES, "%s", curl_easy_strerror(code));
    else if (status < 200 || status > 299)
        snprintf(why, ALERT_WHY_BYTES, "it answered with status %ld", status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    return code == CURLE_OK && status >= 200 && status <= 299;
}

/* ---- the command ---- */

/* A file in memory: a program that does not read it blocks nobody. */
static int input_of(const char *text)
{
    int fd = memfd_create("openetl-alert", MFD_CLOEXEC);
    size_t length = strlen(text), written = 0;
    while (fd >= 0 && written < length) {
        ssize_t step = write(fd, text + written, length - written);
        if (step < 0 && errno != EINTR) {
            close(fd);
            return -1;
        }
        if (step > 0) written += (size_t)step;
    }
    if (fd >= 0) lseek(fd, 0, SEEK_SET);
    return fd;
}

/* A process group of its own, so that it can be ended with all it started; signals as a program expects them; nothing
 * open of this process. Returns 0 or what failed. */
static int start(const char *const *words, int count, int input, int output, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    char **arguments = mem_zero(sizeof *arguments * (size_t)(count + 1));
    for (int i = 0; i < count; i++) {
        arguments[i] = mem_alloc(strlen(words[i]) + 1);
        memcpy(arguments[i], words[i], strlen(words[i]) + 1);
    }
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    posix_spawnattr_init(&attributes);
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    int failed = posix_spawnp(pid, words[0], &files, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    for (int i = 0; i < count; i++)
        free(arguments[i]);
    free(arguments);
    return failed;
}

/* What is there now; what goes beyond the bound is read and dropped. */
static void take_output(int fd, Buf *output)
{
    char piece[1024];
    ssize_t length;
    while ((length = read(fd, piece, sizeof piece)) > 0) {
        size_t room = OUTPUT_MAX - output->length;
        buf_append(output, piece, (size_t)length < room ? (size_t)length : room);
    }
}

/* False when its time is over; the program is gone either way. Its end counts, not its output's: what it left behind in
 * the background may hold that open. */
static bool wait_for(pid_t pid, int fd, int64_t limit_us, Buf *output, int *status)
{
    int64_t until_us = clock_mono_us() + limit_us;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    for (;;) {
        pid_t ended = waitpid(pid, status, WNOHANG);
        take_output(fd, output);
        if (ended == pid || (ended < 0 && errno != EINTR)) return true;
        if (clock_mono_us() >= until_us) break;
        poll(&wait, 1, LOOK_MS);
        if ((wait.revents & POLLIN) == 0) usleep(LOOK_MS * 100);
    }
    kill(-pid, SIGKILL);
    while (waitpid(pid, status, 0) < 0 && errno == EINTR) {
    }
    return false;
}

static void log_output(const char *program, char *text)
{
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        for (char *c = line; *c != '\0'; c++)
            if ((unsigned char)*c < ' ' || *c == 0x7f) *c = ' ';
        log_info("%s: %s", program, line);
    }
}

static bool judge(const char *program, bool ended, int status, int64_t limit_us, char why[ALERT_WHY_BYTES])
{
    if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    char limit[32];
    duration_format(limit_us - limit_us % 100000, limit, sizeof limit);
    if (!ended)
        snprintf(why, ALERT_WHY_BYTES, "%.100s took longer than %s and was killed", program, limit);
    else if (WIFEXITED(status))
        snprintf(why, ALERT_WHY_BYTES, "%.100s ended with exit code %d", program, WEXITSTATUS(status));
    else
        snprintf(why, ALERT_WHY_BYTES, "%.100s was ended by signal %d", program, WTERMSIG(status));
    return false;
}

bool alert_run(const AlertsResource *alerts, const char *json, int64_t limit_us, char why[ALERT_WHY_BYTES])
{
    const char *program = alerts->command[0];
    int ends[2], input = input_of(json);
    if (input < 0 || pipe2(ends, O_CLOEXEC) != 0) {
        snprintf(why, ALERT_WHY_BYTES, "%.100s cannot be started: %s", program, strerror(errno));
        if (input >= 0) close(input);
        return false;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    pid_t pid;
    int failed = start(alerts->command, alerts->command_count, input, ends[1], &pid), status = 0;
    close(input);
    close(ends[1]);
    bool told = false;
    if (failed != 0) {
        snprintf(why, ALERT_WHY_BYTES, "%.100s cannot be started: %s", program, strerror(failed));
    } else {
        Buf output;
        buf_init(&output, OUTPUT_MAX + 1);
        bool ended = wait_for(pid, ends[0], limit_us, &output, &status);
        if (output.length > 0) log_output(program, output.data);
        told = judge(program, ended, status, limit_us, why);
        buf_release(&output);
    }
    close(ends[0]);
    return told;
}
