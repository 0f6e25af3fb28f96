/* Arithmetic on cursor values: the lower bound of the next incremental read (section 5 of the contract). */
#ifndef OPENETL_ENGINE_CURSOR_H
#define OPENETL_ENGINE_CURSOR_H

#include "base/buf.h"
#include "engine/position.h"
#include "plan/plan.h"

/* Dates and timestamps: their upper bound comes from the source's clock. */
bool cursor_is_clock(TypeId id);
/* A clock cursor's text as a number (days or microseconds) and back. False for NULL, "" and text of another form. */
bool cursor_parse(TypeId id, const char *text, int64_t *value);
void cursor_format(TypeId id, int64_t value, Buf *out);
/* The lower bound of the read after `position`: min(watermark, highest value read) - overlap. NULL: no bound yet. */
const char *cursor_lower(const StreamPlan *plan, const Position *position, Arena *arena);

#endif
