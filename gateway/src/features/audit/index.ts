/** Reads, checks and copies the audit log. The kernel writes and prunes it. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { METHODS } from "../../../../protocol/gen/methods.ts";
import { nearest } from "../../../../protocol/runtime/nearest.ts";
import type { FeatureDefinition, Handlers } from "../../kernel/feature.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { type Failure, succeed } from "../../ports/result.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { existingSession } from "../../kernel/naming.ts";
import type { HandedOnPort } from "../../ports/delegation.ts";
import type { RunStoryPort } from "../../ports/run-story.ts";
import type { RunStory } from "../../ports/session.ts";
import type { SessionsPort } from "../../ports/sessions.ts";
import { AuditCopies } from "./copies.ts";
import { STORY_ACTIONS, withDecisions, withTasks } from "./why.ts";

/** Entries are written beside the work that they are about. */
const AFTER_MS = 5_000;
/** Actions that a hint lists. */
const MAX_NAMED = 20;

const unknownAction = (action: string, logged: readonly string[], meant: string | undefined): Failure =>
  fail(
    "protocol.invalid_params",
    `No entry has the action ${action}.`,
    meant === undefined ? `The log has entries of ${logged.slice(0, MAX_NAMED).join(", ") || "no action yet"}.` : `Did you mean ${meant}?`,
  );

export interface AuditPorts extends Pick<KernelPorts, "audit" | "config" | "log" | "now">, SessionsPort, HandedOnPort {
  readonly bucket: Bucket;
}

export const auditFeature: FeatureDefinition<AuditPorts, RunStoryPort> = {
  name: "audit",
  create: (ports) => {
    const copies = new AuditCopies(ports.audit, ports.bucket);
    return {
      offers: { withAudit: (key, story) => withAudit(ports, key, story) },
      methods: auditMethods(ports, copies),
      alarms: [{ name: "audit_copies", next: () => copies.next(), run: (now) => copies.run(now) }],
    };
  },
};

async function withAudit({ audit, now, handedOn }: AuditPorts, key: string, story: RunStory): Promise<RunStory> {
  await audit.seal();
  const { startedAt, endedAt } = story;
  const decided = withDecisions(story, audit.between(STORY_ACTIONS, startedAt, (endedAt ?? now()) + AFTER_MS));
  return withTasks(decided, handedOn(key, story.runId));
}

const auditMethods = (ports: AuditPorts, copies: AuditCopies): Handlers => ({
  "run.why": async (_caller, { sessionKey, runId, callId }) => {
    const { config, sessions, ask } = ports;
    // The first part of a call's id names its conversation.
    const ownKey = callId === undefined ? undefined : sessions.keyOf(callId.slice(0, Math.max(0, callId.indexOf("/"))));
    if (callId !== undefined && ownKey === undefined && sessionKey === undefined) return fail("run.not_found");
    const found = existingSession(config, sessions, ownKey ?? sessionKey ?? `agent:${config.defaultAgentId()}:${config.mainKey()}`);
    if (!found.ok) return found;
    const { key } = found.value;
    const story = await ask(key, (session) => session.story({ runId, callId }));
    return story.ok ? succeed(await withAudit(ports, key, story.value)) : story;
  },
  "audit.list": async (_caller, params) => {
    const { audit } = ports;
    const { action } = params;
    if (action !== undefined) {
      const logged = audit.actions();
      const known = [...new Set([...logged, ...Object.keys(METHODS)])];
      if (!known.includes(action)) return unknownAction(action, logged, nearest(action, known));
    }
    const { entries, count, intact } = await audit.list(params.limit ?? LIMITS.pageItems, params.beforeSeq, params.action);
    return succeed({ entries: [...entries], count, intact });
  },
  "audit.verify": async (_caller, { afterSeq }) => {
    const { audit, log, now } = ports;
    const page = await audit.verify(afterSeq);
    const { checked, done, last } = page;
    const answer = { done, checked, lastSeq: last.seq, ...(last.hash.length === 64 ? { lastHash: last.hash } : {}) };
    if (!done) return succeed({ ok: true, ...answer });
    const compared = await copies.compare(now()).catch((error: unknown) => {
      log.error("audit_copies_not_read", { error });
      return undefined;
    });
    // A broken log can still be compared with the copies.
    if (page.broken !== undefined)
      return succeed({ ok: false, ...answer, broken: page.broken, ...(compared === undefined ? {} : { exported: compared.exported }) });
    if (compared === undefined) return fail("storage.failed", "The copies of the audit in the bucket could not be read.");
    return succeed({ ok: compared.broken === undefined, ...answer, ...compared });
  },
});
