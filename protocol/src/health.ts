/** Bodies of HTTP answers. The routes are in http.ts. */
import { struct, t } from "./dsl.ts";

export const HealthResult = struct("HealthResult", "The gateway is up. Contains public facts only.", {
  ok: t.literal(true),
  version: t.string(64),
  protocol: t.int(1, 65535),
  fingerprint: t.optional(t.string(64)),
});
export const MediaUploaded = struct("MediaUploaded", "A stored file. Use its `r2Key` in an attachment.", {
  r2Key: t.string(1024),
  mimeType: t.string(128),
  sizeBytes: t.int(),
  sha256: t.string(64),
  filename: t.optional(t.string(256)),
});
export const ProblemDetails = struct("ProblemDetails", "An HTTP error (RFC 9457), with the reason and code of the wire.", {
  type: t.string(256),
  title: t.text(),
  status: t.int(100, 599),
  detail: t.optional(t.text()),
  /** What to do next, for a person. */
  hint: t.optional(t.text()),
  code: t.int(0, 99999),
  reason: t.string(64),
  retryable: t.optional(t.bool()),
});
