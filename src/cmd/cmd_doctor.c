#include "cmd/common.h"
#include "report/doctor_report.h"

static int doctor_command_run(Invocation *invocation)
{
    Err err;
    State *state;
    ResourceSet given, stored;
    DoctorReport report;
    if (!command_files(invocation, &given, &err) || !command_state(invocation, true, &state, &err) ||
        !state_resources(state, invocation->arena, &stored, &err))
        return command_fail(invocation, &err);
    if (given.count == 0 && stored.count == 0) {
        err_set(&err, ERR_RESOURCE_NOT_FOUND, "there is nothing to check: no resource is given or stored");
        err_fix(&err, "openetl doctor -f FILE checks the resources of a file");
        return command_fail(invocation, &err);
    }
    DoctorSpec spec = {
        .workspace = invocation->settings.workspace,
        .state_place = state_place(state),
        .given = &given,
        .stored = &stored,
        .names = invocation->args,
        .name_count = invocation->arg_count,
    };
    if (!doctor_run(&spec, invocation->arena, &report, &err)) return command_fail(invocation, &err);
    if (wants_json(invocation)) {
        answer_json(invocation, doctor_json(&report));
    } else {
        Buf out;
        buf_init(&out, ANSWER_MAX_BYTES);
        doctor_print(&report, invocation->settings.color, invocation->arena, &out);
        answer_text(invocation, &out);
    }
    return report.red == 0 ? ANSWER_DONE : ANSWER_NO;
}

static const Option OPTIONS[] = {OPTION_FILE, {NULL, 0, NULL, false, NULL}};

extern const Command cmd_doctor;
const Command cmd_doctor = {
    .name = "doctor",
    .summary = "checks connections and pipelines, with the fix for each red line",
    .arguments = "[NAME...]",
    .least = 0,
    .most = -1,
    .options = OPTIONS,
    .details = "Checks what the files give, or all that is stored; names choose among them. Only reads. Exits 1 when a "
               "line is red.\n"
               "\n"
               "  openetl doctor -f shop.yaml\n"
               "  openetl doctor shop-db\n",
    .run = doctor_command_run,
};
