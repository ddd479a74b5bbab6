/** The methods of domain events. */
import { asAgentId, asSessionKey, type DomainEvent, type EventSummary } from "../../../../protocol/gen/types.ts";
import { actorOf } from "../../kernel/authorise.ts";
import type { Handlers } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { EventQuestionsPort } from "../../ports/approvals.ts";
import { succeed } from "../../ports/result.ts";
import type { EventRow, StartRow } from "./d1-store.ts";

import type { Decide, Load } from "./owner-decisions.ts";

const DEFAULT_LISTED = 50;

type MethodPorts = EventQuestionsPort & Pick<KernelPorts, "audit" | "config" | "scrub">;
export function eventMethods({ audit, config, scrub, eventQuestions }: MethodPorts, load: Load, resolve: Decide): Handlers {
  const summaryOf = ({ envelope, status, attempts, reason }: EventRow): EventSummary => ({
    id: envelope.id,
    topic: envelope.topic,
    status,
    // A message that could not be read names no agent.
    agentId: asAgentId(envelope.agent_id === "" ? config.defaultAgentId() : envelope.agent_id),
    emittedAt: envelope.emitted_at,
    attempts,
    ...(reason === undefined ? {} : { reason: scrub(reason).slice(0, 1024) }),
  });
  const shown = (row: EventRow, starts: readonly StartRow[] = []): DomainEvent => {
    const code = row.status === "waiting_approval" ? eventQuestions.codeOf(row.envelope.id) : undefined;
    const { envelope, sessionKey, taint, decision, decidedBy, decidedAt, word, endedAt } = row;
    return {
      ...summaryOf(row),
      version: envelope.version,
      taskId: envelope.task_id,
      ...(sessionKey === "" ? {} : { sessionKey: asSessionKey(sessionKey) }),
      payload: scrub(JSON.stringify(envelope.payload)).slice(0, 131_072),
      label: taint.label,
      labelSource: scrub(taint.source),
      ...(decision === undefined ? {} : { decision }),
      ...(decidedBy === undefined ? {} : { decidedBy }),
      ...(decidedAt === undefined ? {} : { decidedAt }),
      ...(word === undefined ? {} : { word: scrub(word) }),
      ...(code === undefined ? {} : { code }),
      ...(endedAt === undefined ? {} : { endedAt }),
      ...(starts.length === 0 ? {} : { started: starts.map((start) => ({ ...start, agentId: asAgentId(start.agentId) })) }),
    };
  };
  return {
    "events.list": async (_caller, { limit = DEFAULT_LISTED, before, ...asked }) => {
      const parts = await load();
      if (!parts.ok) return parts;
      const after = before === undefined ? {} : { before: before.trim().toLowerCase() };
      const page = await parts.value.events.list({ ...asked, ...after, limit });
      return page.ok ? succeed({ events: page.value.events.map(summaryOf), more: page.value.more }) : page;
    },
    "events.show": async (_caller, { id }) => {
      const parts = await load();
      if (!parts.ok) return parts;
      const found = await parts.value.keeper.find(id);
      if (!found.ok) return found;
      const starts = await parts.value.events.starts(found.value.envelope.id);
      return starts.ok ? succeed({ event: shown(found.value, starts.value) }) : starts;
    },
    "events.resolve": async ({ connection }, { id, decision }) => {
      const done = await resolve(id, { decision, by: actorOf(connection.principal) });
      return done.ok ? succeed({ event: shown(done.value) }) : done;
    },
    "events.replay": async ({ connection }, { id }) => {
      const parts = await load();
      if (!parts.ok) return parts;
      const done = await parts.value.keeper.replay(id);
      const entry = { actor: actorOf(connection.principal), action: "events.replay", target: id } as const;
      audit.append({ ...entry, decision: done.ok ? "allowed" : "failed" });
      return done.ok ? succeed({ event: shown(done.value) }) : done;
    },
  };
}
