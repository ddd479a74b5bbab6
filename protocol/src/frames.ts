/** Frames of the socket. Text frames are defined here; a binary frame is a 4-byte transfer id and a chunk. */
import { struct, t, tagged } from "./dsl.ts";

export const ErrorShape = struct("ErrorShape", "An error. Every error on the wire has this shape.", {
  code: t.int(0, 99999),
  reason: t.string(64),
  /** What happened, for a person. */
  message: t.text(),
  /** What to do next, for a person. */
  hint: t.optional(t.text()),
  details: t.optional(t.json()),
  retryable: t.optional(t.bool()),
});

export const Frame = tagged("Frame", "One WebSocket text message.", "type", {
  req: { id: t.string(128, { minLength: 1 }), method: t.string(64, { minLength: 1 }), params: t.optional(t.json()) },
  res: { id: t.string(128, { minLength: 1 }), ok: t.bool(), payload: t.optional(t.json()), error: t.optional(ErrorShape) },
  evt: { event: t.string(64, { minLength: 1 }), payload: t.optional(t.json()), seq: t.optional(t.int()) },
});
