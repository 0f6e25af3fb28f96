/* One stream's read: its range, its rows, the proof that an empty one is empty. A feed leads it; where it is cut into parts
 * others help. What it finds goes into the queue, in order within each part. */
#ifndef OPENETL_ENGINE_STREAM_READ_H
#define OPENETL_ENGINE_STREAM_READ_H

#include "engine/crew.h"

/* A session for reading, of the source or its replica, and one of the source itself; closed by their owners. */
bool source_session(Attempt *attempt, Session **session, Err *err);
bool primary_session(Attempt *attempt, Session **session, Err *err);

/* How its table is read. */
ReadSpec stream_read_spec(Attempt *attempt, const StreamRun *run);

/* Reads the stream to its end, or until the crew is ending. */
bool stream_read_lead(Crew *crew, int stream, Session *session, Arena *arena, Err *err);
/* Reads parts of a share; the share was given by crew_next and is left in here. A session that cannot join is no error:
 * *joined false. */
bool stream_read_help(Crew *crew, Share *share, Session *session, bool *joined, Err *err);

#endif
