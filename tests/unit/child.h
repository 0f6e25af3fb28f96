/* Runs something that ends the process, in a child. */
#ifndef OPENETL_TESTS_UNIT_CHILD_H
#define OPENETL_TESTS_UNIT_CHILD_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Ends before the leak checker of a sanitized build looks at what a BUG leaves behind. */
static inline void child_leave(int code, void *unused)
{
    (void)unused;
    _exit(code);
}

/* The wait status of a child that runs `act`; its message is thrown away. */
static inline int child_status(void (*act)(void))
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL || on_exit(child_leave, NULL) != 0) _exit(1);
        act();
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    return status;
}

/* The exit code, or -1 when a signal ended it. */
static inline int child_exit_code(void (*act)(void))
{
    int status = child_status(act);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
