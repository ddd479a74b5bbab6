/** Questions about tool calls between sessions, which own them, and the gateway, which shows them and takes the answers. */
import type { ApprovalEntry, ApprovalOutcome, PolicyMode } from "../../../protocol/gen/types.ts";
import { actorName } from "./actor.ts";
import type { GrantChoice } from "./grants.ts";
import type { Offer } from "./grants.ts";
import type { Origin } from "./origin.ts";
import type { Result } from "./result.ts";
import type { ToolTarget } from "./tool-target.ts";

/** A call or a paused run that waits for the owner's word. Texts are escaped and safe to show. */
export interface WaitingQuestion {
  readonly code: string;
  readonly callId: string;
  readonly runId: string;
  /** As the model knows the tool. */
  readonly name: string;
  readonly target: ToolTarget;
  /** Whether a paused run may use more than a limit allows; there is no call. */
  readonly isAboutLimit?: true;
  /** What an answer is bound to. */
  readonly hash: string;
  /** What an answer can allow for longer than once, and the conversation that asks. */
  readonly offer?: Offer & { readonly sessionId: string };
  readonly rule: string;
  readonly why: string;
  /** Everything that the call will do: its arguments, or their beginning. */
  readonly text: string;
  /** The size of the whole, and its sha256 when `text` is only the beginning. */
  readonly bytes: number;
  readonly sha256?: string;
  /** Wall times. */
  readonly createdAt: number;
  readonly expiresAt: number;
}
export interface EndedQuestionReport {
  readonly code: string;
  readonly outcome: ApprovalOutcome;
  /** Who answered. */
  readonly by?: string;
  /** The code of the new question. */
  readonly again?: string;
  /** What else was allowed with the answer. */
  readonly choice?: GrantChoice;
  readonly at: number;
}
/** What the gateway shows of one session: all its questions, its conversation and its mode. The gateway drops a report that is older than one it has. */
export interface ApprovalReport {
  readonly sessionKey: string;
  readonly agentId: string;
  readonly revision: number;
  /** The origin of the run whose calls wait; absent when none waits. */
  readonly origin?: Origin;
  readonly waiting: readonly WaitingQuestion[];
  readonly ended: readonly EndedQuestionReport[];
  /** The current conversation and its own mode. Absent: the report is of a program that did not tell. */
  readonly conversation?: { readonly sessionId: string; readonly mode?: PolicyMode; readonly modeUntil?: number };
}

/** An answer on its way to the session. The gateway has checked that it is the owner's. */
export interface ApprovalAnswer {
  readonly code: string;
  readonly answer: "allow" | "deny";
  readonly word?: string;
  readonly by: string;
  readonly hash?: string;
  /** With `allow`: for how long calls like this one are allowed. */
  readonly choice?: GrantChoice;
}
/** `outcome`: how the question ended; for a repeated answer the same as for the first. */
export interface ApprovalTaken {
  readonly outcome: ApprovalOutcome;
  readonly by?: string;
  readonly again?: string;
  /** With `void`: why the call can no longer be made, as the model is told. */
  readonly why?: string;
  /** The question was about a limit of a run. */
  readonly limit?: true;
  /** The question was about a domain event. */
  readonly event?: true;
  /** The question had ended before, at this wall time: the answer changed nothing. */
  readonly endedAt?: number;
}

/** Questions of one conversation came, or ended. */
export interface ApprovalChange {
  readonly sessionKey: string;
  /** Codes of questions that ended. */
  readonly ended: readonly string[];
}
/** What the approvals feature offers to other features. */
export interface ApprovalsPort {
  readonly approvals: {
    /** The questions of a conversation that wait now. */
    waiting(sessionKey: string): readonly ApprovalEntry[];
    /** Calls the listener in the turn in which questions of a conversation came or ended. */
    onChange(listener: (change: ApprovalChange) => void): { readonly stop: () => void };
    /** A question with this code waits, or has ended lately. */
    knows(code: string): boolean;
    /** The caller has checked that the answer is the owner's. `by` is for the record. */
    answer(
      by: string,
      answer: { readonly code: string; readonly decision: "allow" | "deny"; readonly word?: string },
    ): Promise<Result<ApprovalTaken>>;
  };
}
/** A domain event that waits for the owner. Its texts may be of anyone: they are escaped here. */
export interface EventQuestion {
  readonly id: string;
  readonly agentId: string;
  readonly sessionKey: string;
  readonly runId: string;
  readonly topic: string;
  readonly text: string;
  readonly why: string;
}
/** What the approvals feature offers to domain events: questions in the same rows, answered in the same places. */
export interface EventQuestionsPort {
  readonly eventQuestions: {
    /** The code of the question, which waits from now on. Once per event. */
    ask(question: EventQuestion): Promise<string>;
    /** The question is over. */
    end(eventId: string, end: { readonly outcome: "allowed" | "denied" | "expired"; readonly by: string }): void;
    /** The code of the event's question while it waits. */
    codeOf(eventId: string): string | undefined;
    /** Events whose time for an answer is over. */
    expired(now: number): readonly string[];
    nextExpiry(): number | undefined;
    /** The agent is gone, and the time of its questions with it. */
    agentGone(agentId: string): void;
    /** Who carries out the answers. */
    answeredBy(answer: EventAnswerer): void;
  };
}
export type EventAnswerer = (
  eventId: string,
  answer: { readonly decision: "approve" | "reject"; readonly by: string; readonly word?: string },
) => Promise<Result<ApprovalTaken>>;
/** Before the name of a setting: who ended the question about a limit that leaves enough again (rule SP10). */
export const BY_SETTING = "setting:";
/** How a question ended, for the person who answered it. */
export function endText(code: string, { outcome, by, again, why, limit, event, endedAt }: ApprovalTaken, now: number): string {
  const setting = by?.startsWith(BY_SETTING) ? by.slice(BY_SETTING.length) : undefined;
  if (endedAt !== undefined && setting !== undefined)
    return `${code} is over (${agoText(now - endedAt)}): the limit \`${setting}\` left enough again, so the run went on. This answer changes nothing.`;
  if (endedAt !== undefined && (outcome === "allowed" || outcome === "denied"))
    return `${code} was ${outcome} before (${agoText(now - endedAt)}${by === undefined ? "" : `, by ${actorName(by)}`}), and this answer changes nothing.`;
  if (event && outcome === "allowed") return `${code} is approved: the event goes to its handler.`;
  if (event && outcome === "denied") return `${code} is rejected: the event will not be handled.`;
  switch (outcome) {
    case "allowed":
      // Other questions of the run may be open still.
      return limit ? `${code} is allowed, and the run continues.` : `${code} is allowed, and its call goes on.`;
    case "denied":
      if (limit) return `${code} is denied: the run ends here, and what it has done stays.`;
      return `${code} is denied${by === undefined ? "" : ` by ${actorName(by)}`}, and nothing of it is done.`;
    case "expired":
      return `${code}: the time for an answer is over, so it was denied. Ask the agent again if you want it.`;
    case "withdrawn":
      return `${code}: the run has ended, so nothing of it is done.`;
    case "void":
      return why === undefined
        ? `${code}: the call can no longer be made, because the policy or what is connected changed.`
        : `${code}: the call can no longer be made. The agent was told: ${why}`;
    case "asked_again":
      return `${code}: the policy has changed, so nothing was allowed. The call is asked about again with the code ${again ?? "?"}.`;
  }
}
function agoText(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 1) return "less than a minute ago";
  return minutes < 120 ? `${minutes} min ago` : `${Math.floor(minutes / 60)} h ago`;
}
