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
/* The same for every cursor that counts: also integers, whose text is their digits. A date or a time in a shorter form (no zone: UTC; no
 * time: midnight) is taken too. */
bool cursor_counts(TypeId id);
bool cursor_value(TypeId id, const char *text, int64_t *value);
const char *cursor_text(TypeId id, int64_t value, Arena *arena);
/* The lower bound of the read after `position`: min(watermark, highest value read) - overlap. NULL: no bound yet. */
const char *cursor_lower(const StreamPlan *plan, const Position *position, Arena *arena);

#endif
