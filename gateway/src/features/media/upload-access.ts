/**
 * Decides who may upload what over HTTP: a client a file for a session that it may write to, a machine an image for a session's call.
 * Must not store anything.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { UploadAsked, UploadPermit } from "../../ports/http.ts";
import { type Result, succeed } from "../../ports/result.ts";
import { scopesOf } from "../../kernel/authorise.ts";
import { FailureWindow } from "../../kernel/limits.ts";
import { writableSession } from "../../kernel/naming.ts";
import { fail } from "../../kernel/outcome.ts";
import type { TokenGrant } from "../../kernel/token-store.ts";
import { ownerOf } from "../../kernel/routing/call-ids.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { SessionsPort } from "../../ports/sessions.ts";

/** Limit per minute and token. A message has at most 16 files. */
const UPLOADS_PER_MINUTE = 120;
const UPLOAD_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const CALL_ID = /^[a-z2-7]{10}\/r[1-9][0-9]{0,14}\/[0-9]{1,9}\/[0-9]{1,9}$/;

export type UploadPorts = Pick<SessionsPort, "sessions"> & Pick<KernelPorts, "config" | "connections">;

export class UploadAccess {
  readonly #ports: UploadPorts;
  readonly #window = new FailureWindow(UPLOADS_PER_MINUTE);

  constructor(ports: UploadPorts) {
    this.#ports = ports;
  }

  admit(grant: TokenGrant, asked: UploadAsked, now: number): Result<UploadPermit> {
    if ((asked.sessionKey === undefined) === (asked.callId === undefined))
      return fail("protocol.invalid_params", "Name either `sessionKey` (a client) or `callId` (a machine) in the query.");
    const permit = asked.callId === undefined ? forMessage(this.#ports, grant, asked) : forCall(this.#ports, grant, asked.callId, now);
    if (permit.ok && this.#window.failed(grant.tokenId, now))
      return fail("limit.rate", `At most ${UPLOADS_PER_MINUTE} files a minute are accepted.`);
    return permit;
  }
}

function forMessage(ports: UploadPorts, grant: TokenGrant, { sessionKey = "", id }: UploadAsked): Result<UploadPermit> {
  const isClient = grant.kind !== "node" && grant.kind !== "channel";
  if (!isClient || !scopesOf({ kind: grant.kind, mode: "client" }).includes("chat"))
    return fail("auth.forbidden", "Uploading a file for a message needs a client or admin token that may chat.");
  if (id !== undefined && !UPLOAD_ID.test(id))
    return fail("protocol.invalid_params", "`id` is not a UUID.", "Send a UUID, or leave `id` out.");
  const found = writableSession(ports.config, sessionKey);
  if (!found.ok) return found;
  return succeed({
    kind: "upload",
    sessionKey: found.value.key,
    ...(id === undefined ? {} : { id: id.toLowerCase() }),
    maxBytes: LIMITS.mediaBytes,
  });
}

/** When the result arrives, the session checks that the call is open at that machine; until then the file can't be referenced. */
function forCall(ports: UploadPorts, grant: TokenGrant, callId: string, now: number): Result<UploadPermit> {
  const owner = ownerOf(callId);
  const sessionKey = owner?.kind === "session" && CALL_ID.test(callId) ? ports.sessions.keyOf(owner.ref) : undefined;
  // Only a machine that was given the call has it; an admin token uploads for the machine that runs it.
  const node = ports.connections
    .nodes()
    .find(
      ({ calls, manyUntil, principal }) =>
        (calls.has(callId) || manyUntil > now) && (grant.kind === "admin" ? calls.has(callId) : principal.id === grant.nodeId),
    );
  const nodeId = node?.principal.id;
  if (grant.kind !== "node" && grant.kind !== "admin")
    return fail("auth.forbidden", "Uploading for a call needs the token of the machine that runs it.");
  if (sessionKey === undefined || nodeId === undefined) return fail("media.not_found", "There is no such call of a conversation.");
  return succeed({ kind: "call", sessionKey, callId, nodeId, maxBytes: LIMITS.imageBytes });
}
