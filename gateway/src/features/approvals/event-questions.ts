/**
 * Questions about domain events (rule EV7), in the rows of the questions about tool calls. The event's log decides; here is the code, and
 * what people are shown.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { type ApprovalEntry, asAgentId, asCallId, asRunId, asSessionKey, asToolName } from "../../../../protocol/gen/types.ts";
import { DAY_MS } from "../../../../protocol/runtime/day.ts";
import { approvalCode } from "../../calls/approval.ts";
import { shownText, visible } from "../../calls/shown-call.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { ApprovalTaken, EventAnswerer, EventQuestion, EventQuestionsPort } from "../../ports/approvals.ts";
import type { Result } from "../../ports/result.ts";
import { type ApprovalStore, EVENT_KEYS } from "./store.ts";

const SEED_CHARS = 26;
const [PREFIX] = EVENT_KEYS;
const keyOf = (eventId: string): string => `${PREFIX}${eventId}`;
export const isEventKey = (key: string): boolean => key.startsWith(PREFIX);

export class EventQuestions {
  readonly port: EventQuestionsPort["eventQuestions"];
  #answer: EventAnswerer | undefined;

  constructor(store: ApprovalStore, { ids, now, arm, scrub }: Pick<KernelPorts, "ids" | "now" | "arm" | "scrub">) {
    this.port = {
      ask: async (question) => {
        const hash = await ids.sha256(JSON.stringify([question.id, question.topic, question.text]));
        const { text, bytes, whole } = shownText(scrub(question.text));
        const textSha256 = whole === undefined ? {} : { textSha256: await ids.sha256(whole) };
        const key = keyOf(question.id);
        const [known] = store.waiting(key);
        if (known !== undefined) return known.code;
        const code = approvalCode(ids.name(SEED_CHARS), new Set(store.codes()));
        store.ask(key, { ...entryOf({ ...question, why: scrub(question.why) }, code, now()), text, textBytes: bytes, ...textSha256, hash });
        arm();
        return code;
      },
      end: (eventId, { outcome, by }) => {
        const [known] = store.waiting(keyOf(eventId));
        if (known === undefined) return;
        store.end(keyOf(eventId), { code: known.code, outcome, by, at: now() });
        store.bound();
        arm();
      },
      codeOf: (eventId) => store.waiting(keyOf(eventId))[0]?.code,
      expired: (at) => store.expired(EVENT_KEYS, at).map((key) => key.slice(PREFIX.length)),
      agentGone: (agentId) => {
        store.expireOf(EVENT_KEYS, agentId, now());
        arm();
      },
      nextExpiry: () => store.nextExpiry(EVENT_KEYS),
      answeredBy: (answer) => {
        this.#answer = answer;
      },
    };
  }

  async answer(
    entry: ApprovalEntry,
    {
      decision,
      by,
      word,
      hash,
    }: { readonly decision: "allow" | "deny"; readonly by: string; readonly word?: string; readonly hash?: string },
  ): Promise<Result<ApprovalTaken>> {
    if (this.#answer === undefined || entry.event === undefined || (hash !== undefined && hash !== entry.hash))
      return fail("approval.not_found");
    const taken = await this.#answer(entry.event, {
      decision: decision === "allow" ? "approve" : "reject",
      by,
      ...(word === undefined ? {} : { word }),
    });
    return taken.ok ? { ok: true, value: { ...taken.value, event: true } } : taken;
  }
}
type Shown = "text" | "textBytes" | "textSha256" | "hash";
function entryOf(question: EventQuestion, code: string, now: number): Omit<ApprovalEntry, Shown> {
  const { id, agentId, sessionKey, runId, topic, why } = question;
  return {
    code,
    sessionKey: asSessionKey(sessionKey),
    agentId: asAgentId(agentId),
    runId: asRunId(runId),
    callId: asCallId(id),
    tool: asToolName("emit_event"),
    event: id,
    why: visible(why).slice(0, 4096),
    rule: `topic ${topic}`,
    createdAt: now,
    expiresAt: now + LIMITS.eventWaitDays * DAY_MS,
  };
}
