/**
 * Approvals: an index of the tool calls of all sessions that wait for the owner, and the way of an answer to its session. It decides
 * nothing: the policy asks, the owner answers, and the session carries the answer out.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import {
  asAgentId,
  asCallId,
  asNodeId,
  asRunId,
  asSessionKey,
  asToolName,
  type ApprovalAnswerKind,
  type ApprovalEntry,
} from "../../../../protocol/gen/types.ts";
import { utf8Bytes } from "../../../../protocol/runtime/utf8.ts";
import { readCode } from "../../calls/approval.ts";
import { answerRule } from "../../ports/audit.ts";
import { actorOf } from "../../kernel/authorise.ts";
import type { FeatureDefinition } from "../../kernel/feature.ts";
import { namedSession } from "../../kernel/naming.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { askedText } from "../../notify/asked-text.ts";
import type {
  ApprovalChange,
  ApprovalReport,
  ApprovalsPort,
  ApprovalTaken,
  EventQuestionsPort,
  WaitingQuestion,
} from "../../ports/approvals.ts";
import type { NotifyPort } from "../../ports/notify.ts";
import type { Origin } from "../../ports/origin.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { SessionsPort } from "../../ports/sessions.ts";
import { covers } from "../../policy/grants.ts";
import { EventQuestions, isEventKey } from "./event-questions.ts";
import { GrantStore } from "./grant-store.ts";
import { allowingRules, choiceOf, choicesOf, grantNow, removeRule, ruleNamed, shownGrant } from "./granting.ts";
import { LimitQuestions } from "./limit-questions.ts";
import { APPROVAL_MIGRATIONS } from "./migrations.ts";
import { ApprovalStore, type Asked } from "./store.ts";

/** Characters of a question's reason, without the note about the cut. */
const WHY_CHARS = 4000;
const whyText = (why: string): string =>
  why.length <= WHY_CHARS ? why : `${why.slice(0, WHY_CHARS)} ... (${why.length - WHY_CHARS} characters are not shown)`;

export type ApprovalPorts = SessionsPort &
  NotifyPort &
  Pick<KernelPorts, "arm" | "audit" | "background" | "config" | "connections" | "contextVersion" | "database" | "ids" | "now" | "scrub">;
export interface Answer {
  readonly code: string;
  readonly decision: ApprovalAnswerKind;
  readonly word?: string | undefined;
  readonly sessionKey?: string | undefined;
  readonly hash?: string | undefined;
}
/** As many as the contract's answer holds, of those about events fewer. The others are those that wait longest before they expire. */
const LISTED = { calls: 900, events: 100 };
/** The rest of a frame is for what is around the list. */
const LISTED_BYTES = LIMITS.frameBytes - 65_536;
/** What sessions may call. */
export interface ApprovalsRpc {
  report(report: ApprovalReport): void;
  useGrants(sessionKey: string, ids: readonly string[]): readonly string[];
}

export const approvalsFeature: FeatureDefinition<
  ApprovalPorts,
  ApprovalsPort & EventQuestionsPort & { readonly approvalsRpc: ApprovalsRpc }
> = {
  name: "approvals",
  migrations: APPROVAL_MIGRATIONS,
  create(ports) {
    const { arm, audit, background, config, connections, notify, now, sessions } = ports;
    const store = new ApprovalStore(ports.database);
    const grants = new GrantStore(ports.database);
    const events = new EventQuestions(store, ports);
    const limits = new LimitQuestions(store, ports);
    const listeners = new Set<(change: ApprovalChange) => void>();

    function report({ sessionKey, agentId, revision, origin, waiting, ended, conversation }: ApprovalReport): void {
      const rows = ended.map(({ code, outcome, by, again, choice, at }) => ({
        code,
        outcome,
        ...(by === undefined ? {} : { by }),
        ...(again === undefined ? {} : { again }),
        ...(choice === undefined ? {} : { choice }),
        at,
      }));
      const made: Asked[] = [];
      const changes = store.report(
        sessionKey,
        revision,
        waiting.map((question) => ({
          entry: entryOf(sessionKey, agentId, question),
          ...(question.offer === undefined ? {} : { offer: question.offer }),
        })),
        rows,
        now(),
        ({ entry, offer, end }) => {
          if (end.outcome !== "allowed" || end.choice === undefined || offer === undefined) return;
          const by = end.by ?? "the owner";
          const given = grantNow(ports, grants, entry, offer, end.choice, by);
          audit.append({
            actor: by,
            action: "approval.grant",
            target: entry.tool,
            decision: given.ok ? "allowed" : "failed",
            detail: `${entry.code} ${given.text}`,
            argsHash: entry.hash,
          });
          if (given.ok && end.choice !== "always") made.push({ entry, offer });
        },
      );
      if (changes === undefined) return;
      if (conversation !== undefined) {
        const { sessionId, ...mode } = conversation;
        // Also one that this report has made: the reset came after the answer.
        grants.endOthers(sessionKey, sessionId, now());
        sessions.setMode(sessionKey, mode);
      }
      for (const grant of made) background("answering what a grant covers", answerCovered(grant));
      const actor = `session:${sessionKey}`;
      for (const entry of changes.asked) {
        audit.append({
          actor,
          action: "approval.ask",
          target: entry.tool,
          decision: "allowed",
          rule: entry.rule,
          detail: `${entry.code} ${entry.callId} ${entry.rule}`,
          argsHash: entry.hash,
        });
        if (isUnattended(origin)) {
          const key = taskKey(sessionKey, entry.code);
          const text = askedText(`The task ${origin.taskId} of the agent ${agentId}`, entry);
          notify.tell({ kind: "approval", key, cause: key, text, agentId, question: entry.code });
        }
        connections.broadcast("approval", { state: "waiting", code: entry.code, sessionKey: entry.sessionKey, approval: entry });
      }
      for (const { entry, end } of changes.ended) {
        const { code, outcome, by, again } = end;
        notify.over(taskKey(sessionKey, code));
        audit.append({
          actor,
          action: "approval.end",
          target: entry.tool,
          // Also a question that was given up allows nothing.
          decision: outcome === "allowed" ? "allowed" : "denied",
          detail: `${code} ${outcome}`,
          argsHash: entry.hash,
        });
        connections.broadcast("approval", {
          state: "ended",
          code,
          sessionKey: entry.sessionKey,
          outcome,
          ...(by === undefined ? {} : { by }),
          ...(again === undefined ? {} : { again }),
        });
      }
      limits.reported(sessionKey, store.waiting(sessionKey));
      const codes = changes.ended.map(({ end }) => end.code);
      if (changes.asked.length + codes.length > 0) for (const listener of [...listeners]) listener({ sessionKey, ended: codes });
      store.bound();
      arm();
    }

    /** Other calls that wait and that the new grant covers: the owner has answered them too. */
    async function answerCovered({ entry: { code, hash }, offer }: Asked): Promise<void> {
      const grant = grants.list(now()).find((candidate) => candidate.code === code && candidate.scope.agentId === offer?.scope.agentId);
      if (grant === undefined) return;
      for (const { entry, offer: asked } of store.offers()) {
        if (asked === undefined || entry.hash === hash || !covers(grant.scope, asked.scope)) continue;
        if (grant.sessionId !== undefined && (entry.sessionKey !== grant.sessionKey || asked.sessionId !== grant.sessionId)) continue;
        const by = `grant:${grant.id}`;
        const given = { code: entry.code, decision: "allow" as const, sessionKey: entry.sessionKey, hash: entry.hash };
        recordAnswer(by, given, await answer(by, given));
      }
    }

    async function answer(by: string, { code: typed, decision, word, sessionKey, hash }: Answer): Promise<Result<ApprovalTaken>> {
      const code = readCode(typed);
      const found = code === undefined ? [] : store.find(code, sessionKey);
      const [question] = found;
      if (question === undefined) return fail("approval.not_found");
      if (found.length > 1) return fail("approval.ambiguous");
      if (question.state === "ended") {
        const { outcome, by: first, again, at } = question.ended;
        return succeed({
          outcome,
          ...(first === undefined ? {} : { by: first }),
          ...(again === undefined ? {} : { again }),
          ...(isEventKey(question.sessionKey) ? { event: true } : {}),
          endedAt: at,
        });
      }
      const choice = choiceOf(decision);
      const { limit, rule } = question.entry;
      if (choice !== undefined && limit)
        return fail(
          "approval.once_only",
          "A question about a limit is answered for its run only.",
          `For good, raise the limit: \`${rule}\`.`,
        );
      if (choice !== undefined && question.entry.choices?.every((possible) => possible.answer !== decision) !== false)
        return fail("approval.once_only");
      if (question.entry.event !== undefined) {
        const said = { ...(word === undefined ? {} : { word }), ...(hash === undefined ? {} : { hash }) };
        return events.answer(question.entry, { decision: decision === "deny" ? "deny" : "allow", by, ...said });
      }
      const taken = await ports.ask(question.sessionKey, (session) =>
        session.answerApproval({
          code: question.code,
          answer: decision === "deny" ? "deny" : "allow",
          by,
          ...(choice === undefined ? {} : { choice }),
          ...(word === undefined ? {} : { word }),
          hash: hash ?? question.entry.hash,
        }),
      );
      return taken.ok && limit ? succeed({ ...taken.value, limit }) : taken;
    }

    const recordAnswer = (by: string, { code, decision }: Pick<Answer, "code" | "decision">, result: Result<ApprovalTaken>): void =>
      audit.append({
        actor: by,
        action: "approval.resolve",
        target: code,
        // An answer that came too late has allowed nothing.
        decision: result.ok && (result.value.outcome === "allowed" || result.value.outcome === "denied") ? result.value.outcome : "failed",
        // Names the question, so that the owner's denials are no flood of one denial.
        ...(result.ok && result.value.outcome === "denied" ? { rule: answerRule(code) } : {}),
        detail: `${decision}: ${result.ok ? result.value.outcome : result.error.reason}`,
      });

    return {
      offers: {
        eventQuestions: events.port,
        approvalsRpc: { report, useGrants: (sessionKey, ids) => grants.use(sessionKey, ids, now()) },
        approvals: {
          waiting: (sessionKey) => store.waiting(sessionKey),
          onChange: (listener) => {
            listeners.add(listener);
            return { stop: () => void listeners.delete(listener) };
          },
          knows: (code) => store.find(code, undefined).length > 0,
          async answer(by, given) {
            const result = await answer(by, given);
            recordAnswer(by, given, result);
            return result;
          },
        },
      },
      methods: {
        "approval.list": (_caller, { sessionKey }) => {
          if (sessionKey === undefined) {
            const { calls, events } = store.everywhere(LISTED);
            return succeed({ approvals: fitting([...calls, ...events]) });
          }
          const named = namedSession(config, sessionKey);
          if (!named.ok) return named;
          const { key } = named.value;
          return succeed({ approvals: fitting([...store.waiting(key), ...store.eventsOf(key, LISTED.events)]) });
        },
        "approval.resolve": async ({ connection }, params) => {
          const named = params.sessionKey === undefined ? undefined : namedSession(config, params.sessionKey);
          if (named?.ok === false) return named;
          const by = actorOf(connection.principal);
          const result = await answer(by, { ...params, sessionKey: named?.value.key });
          recordAnswer(by, params, result);
          return result;
        },
        "approval.grants": () => succeed({ grants: grants.list(now()).map(shownGrant), rules: allowingRules(config.effective()) }),
        "approval.revoke": ({ connection: { principal } }, { id }) => {
          const rule = ruleNamed(id);
          if (rule !== undefined) {
            const removed = removeRule(config, rule);
            if (!removed.ok) return removed;
            for (const target of removed.value)
              audit.append({ actor: actorOf(principal), origin: principal.mode, action: "config.unset", target, decision: "allowed" });
            return succeed({ ok: true as const, revoked: true });
          }
          const revoked = grants.revoke(id, now());
          return revoked === undefined ? fail("approval.grant_not_found") : succeed({ ok: true as const, revoked });
        },
      },
      runContext: ({ agentId, sessionKey }) => ({ grants: grants.for(agentId, sessionKey, now()) }),
      contextVersion: () => `grants ${grants.version()}`,
      sessionGone({ key }) {
        limits.reported(key, []);
        store.forget(key);
        grants.forget(key);
      },
      alarms: [
        { name: "limits_changed", next: () => limits.next(), run: () => limits.run() },
        { name: "approvals_ended", next: () => store.nextPrune(), run: (at) => store.prune(at) },
        { name: "grants_ended", next: () => grants.nextPrune(), run: (at) => grants.prune(at) },
      ],
    };
  },
};

/** No one follows a task of a program, nor one that an event began. Delegations tell the owner of a delegated one (rule DG6). */
const isUnattended = (origin: Origin | undefined): origin is Extract<Origin, { readonly kind: "task" }> =>
  origin?.kind === "task" && origin.delegation === undefined;
const taskKey = (sessionKey: string, code: string): string => `task/${sessionKey}/${code}`;

/** As many as fit a frame, the first ones first. */
function fitting(entries: readonly ApprovalEntry[]): ApprovalEntry[] {
  let left = LISTED_BYTES;
  const cut = entries.findIndex((entry) => {
    left -= utf8Bytes(JSON.stringify(entry)) + 1;
    return left < 0;
  });
  return entries.slice(0, cut < 0 ? entries.length : cut);
}

function entryOf(sessionKey: string, agentId: string, question: WaitingQuestion): ApprovalEntry {
  const { code, runId, callId, name, target, isAboutLimit, text, bytes, sha256, why, rule, hash, offer, createdAt, expiresAt } = question;
  return {
    code,
    sessionKey: asSessionKey(sessionKey),
    agentId: asAgentId(agentId),
    runId: asRunId(runId),
    callId: asCallId(callId),
    tool: asToolName(name.slice(0, 192)),
    ...(target.kind === "node" ? { nodeId: asNodeId(target.nodeId) } : {}),
    ...(isAboutLimit ? { limit: true as const } : {}),
    text,
    textBytes: bytes,
    ...(sha256 === undefined ? {} : { textSha256: sha256 }),
    why: whyText(why),
    rule: rule.slice(0, 1024),
    hash,
    ...(offer === undefined ? {} : { choices: choicesOf(offer) }),
    createdAt,
    expiresAt,
  };
}
