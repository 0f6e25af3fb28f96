/* The doctor's lines, as text and JSON. */
#ifndef OPENETL_REPORT_DOCTOR_REPORT_H
#define OPENETL_REPORT_DOCTOR_REPORT_H

#include "base/buf.h"
#include "report/text.h"
#include "tasks/doctor.h"

void doctor_print(const DoctorReport *report, bool color, Arena *arena, Buf *out);
json_t *doctor_json(const DoctorReport *report);

#endif
