/**
 * Bounds of the session machine, beside those of the contract (`LIMITS`). PURE. One place, so that tests can name them.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";

export { LIMITS };

/** Calls of one model answer that are kept at all; those over `LIMITS.toolCallsPerStep` get an error result, those over this are cut off. */
export const CALLS_PER_REPLY = 128;
/** Calls that the session closed and whose own result may still come. The oldest is dropped first, never by age: a clock may jump. */
export const CLOSED_CALLS = 64;
/** Tries of one archive before the reset or compaction is given up. */
export const ARCHIVE_ATTEMPTS = 3;
/** After a failed archive, resets by policy wait this long, so that a broken bucket doesn't slow down every message. */
export const AUTO_RESET_PAUSE_MS = 600_000;
/** Tries of one model call of a summary before a note stands in. */
export const SUMMARY_ATTEMPTS = 3;
/** Texts for daily files that wait for the bucket; beyond that nothing more is picked from conversations. */
export const WAITING_MEMORIES = 32;
/** The user's newest message, quoted beside the summary when it has left the context. */
export const TASK_CHARS = 8_000;
/** Earlier incarnations that are remembered by name. */
export const PREVIOUS_SESSIONS = 10_000;
/** The beginning of a result that clients get with the `tool` event. */
export const PREVIEW_CHARS = 2_000;
/** Arguments of a call that clients get in full with the `tool` event. */
export const EVENT_ARGS_CHARS = 8_000;
/** What the model is shown of a late result; the rest is kept as a file. */
export const LATE_NOTE_CHARS = 4_000;
/** A row is at most `LIMITS.rowBytes`; the difference is for the row's other fields. */
export const MESSAGE_ROW_BYTES = LIMITS.rowBytes - 131_072;
/** Names and provider ids of calls, as they are kept; a real one is far shorter. */
export const CALL_NAME_CHARS = 192;
export const PROVIDER_ID_CHARS = 128;
/** Largest state row. Growing data has tables of its own; this limit catches a bug before the platform does. */
export const STATE_ROW_BYTES = 524_288;
/** Background processes whose end may wake the session; of more the oldest are not awaited any more. */
export const PROCESSES = 64;
/** Processes that wake the session in an hour; the ends of further ones are notes. */
export const WAKES_PER_HOUR = 60;
/** Answered questions that are remembered, so that a second answer gets the result of the first. */
export const ENDED_QUESTIONS = 32;
/** Different calls of a run whose denials are counted. */
export const DENIED_CALLS = 64;
/** Failed calls of the model that a step keeps for the run's record. */
export const FAILED_CALLS = 16;
/** Calls that one cancel names. */
export const CANCEL_CALLS = 256;
/** Open effects at once: a step's calls, and the few others. */
export const OUTBOX_EFFECTS = 256;
/** Replies that wait for a channel. Beyond that the oldest are no longer sent; they stay in the log. */
export const REPLIES_WAITING = 200;
/** Conversations that get the answer of a run beside the first, because they have sent messages for it. */
export const MOST_ROUTES = 8;
