/** Approvals: tool calls that wait for the owner's word. */
import { enumOf, event, method, struct, t } from "./dsl.ts";
import { AgentId, CallId, NodeId, RunId, SessionKey, ToolName } from "./ids.ts";

const Code = t.string(16, { minLength: 1 });
export const ApprovalOutcome = enumOf(
  "ApprovalOutcome",
  "How a question ended. `allowed`: the call was handed over. `denied`: by a person. `expired`: no one answered in time, which denies the call. `withdrawn`: the run ended first. `void`: what is connected, or the policy, changed so that the call can no longer be made. `asked_again`: the policy changed, and the call waits under a new code.",
  ["allowed", "denied", "expired", "withdrawn", "void", "asked_again"],
);
export const ApprovalAnswerKind = enumOf(
  "ApprovalAnswerKind",
  "The answer to a question. `allow`: this call. The others allow calls of the same scope too: in this conversation, for a time, or by a rule that is saved. A question lists those that it takes.",
  ["allow", "deny", "allow_session", "allow_1h", "allow_8h", "allow_30d", "allow_always"],
);
export const ApprovalChoice = struct("ApprovalChoice", "An answer that allows more than the call that waits.", {
  answer: ApprovalAnswerKind,
  /** Exactly what the answer allows; its name says for how long. In a conversation at most 24 hours. */
  text: t.string(4096),
});
export const ApprovalGrant = struct("ApprovalGrant", "What the owner has allowed for a time, by an answer to a question.", {
  id: t.string(32),
  agentId: AgentId,
  /** The only conversation in which it holds. */
  sessionKey: t.optional(SessionKey),
  /** Exactly what it allows. */
  text: t.string(4096),
  /** The code of the answered question. */
  code: Code,
  /** Who answered. */
  by: t.string(512),
  createdAt: t.time(),
  expiresAt: t.time(),
  /** How many answers of the model had calls that it allowed. */
  uses: t.int(),
  lastUsedAt: t.optional(t.time()),
});
export const ApprovalEntry = struct(
  "ApprovalEntry",
  "A tool call, or a paused run, that waits for the owner. In its texts, control, bidi and zero-width characters are written as escapes.",
  {
    /** Names the question, for people: five characters. */
    code: Code,
    sessionKey: SessionKey,
    agentId: AgentId,
    runId: RunId,
    callId: CallId,
    tool: ToolName,
    /** The machine; absent for a tool of the gateway. */
    nodeId: t.optional(NodeId),
    /** The question is whether a paused run may use more than a limit allows. There is no call, and `tool` is `limit`. */
    limit: t.optional(t.literal(true)),
    /** The question is about this domain event. No run waits for the answer. */
    event: t.optional(t.string(32, { minLength: 32, pattern: "^[0-9a-f]+$" })),
    /** Everything that the call will do: its arguments, or both ends of them, 4 KB in all. */
    text: t.string(32768),
    /** Bytes of the whole text. */
    textBytes: t.int(),
    /** The digest of the whole text, when `text` is only its beginning. */
    textSha256: t.optional(t.string(64)),
    /** What about the call needs a word. */
    why: t.string(4096),
    /** What decided: a rule of the configuration, a mode, a class. */
    rule: t.string(1024),
    /** sha256 over call, arguments, target and policy: what the answer is bound to. */
    hash: t.string(128),
    /** The answers that allow more than this call. Absent: it can be allowed once only. */
    choices: t.optional(t.array(ApprovalChoice, 8)),
    createdAt: t.time(),
    expiresAt: t.time(),
  },
);

method("approval.list", {
  doc: "Lists the tool calls and paused runs that wait for your word, the oldest first. Without a session also events, after them: at most 100, and as many as fit; `events.list` has the others.",
  params: { sessionKey: t.optional(SessionKey) },
  result: { approvals: t.array(ApprovalEntry, 1000) },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  errors: ["session.bad_key"],
  idempotent: true,
});
method("approval.resolve", {
  doc: "Answers a question about a tool call. The first answer counts; a later one changes nothing and gets the result of the first.",
  params: {
    code: Code,
    decision: ApprovalAnswerKind,
    /** With a denial: what the model is told. */
    word: t.optional(t.string(2048)),
    /** Needed only when two conversations have a question with this code. */
    sessionKey: t.optional(SessionKey),
    /** `hash` of the question that was shown: an answer to anything else changes nothing. */
    hash: t.optional(t.string(128)),
  },
  result: {
    outcome: ApprovalOutcome,
    /** Who gave the answer that counts. */
    by: t.optional(t.string(512)),
    /** With `asked_again`: the code of the new question. */
    again: t.optional(Code),
    /** With `void`: why the call can no longer be made, as the model is told. */
    why: t.optional(t.string(4096)),
    /** The question was whether a paused run may use more than a limit allows, not about a call. */
    limit: t.optional(t.literal(true)),
    /** The question was about a domain event. */
    event: t.optional(t.literal(true)),
    /** The question had ended before, at this time, so this answer changed nothing. */
    endedAt: t.optional(t.time()),
  },
  callers: ["client"],
  scope: "operate",
  audit: "own",
  errors: ["approval.not_found", "approval.ambiguous", "approval.once_only", "session.bad_key"],
  idempotent: true,
});
method("approval.grants", {
  doc: "Lists what you have allowed for a time, the newest first, and the rules that allow calls.",
  result: {
    grants: t.array(ApprovalGrant, 1000),
    rules: t.optional(
      t.array(
        struct("AllowingRule", "A rule that allows calls, until you remove it.", {
          id: t.string(64),
          /** Its place in the configuration: `toolApproval.rules.2`. */
          setting: t.string(64),
          /** What it allows. */
          text: t.string(4096),
        }),
        1000,
      ),
    ),
  },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  idempotent: true,
});
method("approval.revoke", {
  doc: "Ends what you have allowed, at once: the next such call is decided without it.",
  params: {
    /** The id of a grant; or `rule:ID`, a rule that allows, which is removed from the configuration. */
    id: t.string(128, { minLength: 1 }),
  },
  result: {
    ok: t.literal(true),
    /** False: it did not hold any more. */
    revoked: t.bool(),
  },
  callers: ["client"],
  scope: "operate",
  audit: { target: "id" },
  errors: ["approval.grant_not_found"],
  idempotent: true,
});

event("approval", {
  doc: "A tool call waits for the owner, or waits no more. After a connect, `approval.list` has all of them.",
  payload: {
    state: enumOf("ApprovalState", "Whether the question waits.", ["waiting", "ended"]),
    code: Code,
    sessionKey: SessionKey,
    /** While it waits. */
    approval: t.optional(ApprovalEntry),
    /** When it has ended. */
    outcome: t.optional(ApprovalOutcome),
    by: t.optional(t.string(512)),
    again: t.optional(Code),
  },
  to: ["client"],
});
