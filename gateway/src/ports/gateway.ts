/** What sessions may ask of the gateway. */
import type { ChatEvent, SessionEvent } from "../../../protocol/gen/types.ts";
import type { ApprovalReport } from "./approvals.ts";
import type { SessionAudit } from "./audit.ts";
import type { SessionFileChanging } from "./changes.ts";
import type { ChannelMessage, ChannelMessageSent, ChannelPlaces, ReplyCall } from "./channels.ts";
import type { DelegationPort } from "./delegation.ts";
import type { DispatchOutcome, ToolDispatch } from "./dispatch.ts";
import type { PackToolPort } from "./packs.ts";
import type { Origin } from "./origin.ts";
import type { Result } from "./result.ts";
import type { ModelAccess, RunContext } from "./run-context.ts";
import type { CronPort } from "./schedule.ts";
import type { EventPort } from "./events.ts";
import type { MemoryPort } from "./long-term-memory.ts";
import type { SearchAnswer, SearchInput, SearchableSessions } from "./search.ts";
import type { SessionToSession, SessionToSessionSent } from "./session-to-session.ts";
import type { SpendAnswer, SpendAsk } from "./spend.ts";
import type { TransferPort } from "./transfers.ts";
import type { WaitAnswer, WaitReport } from "./waits.ts";
import type { SeenSkill, SkillPin, SkillWriting } from "./skills.ts";

/** An event for every client that follows the session. Log events carry `sessionSeq`. */
export type SessionNews =
  | { readonly event: "chat"; readonly payload: ChatEvent }
  | { readonly event: "session"; readonly payload: SessionEvent };

/** The event's seq in the session's log; undefined for events that are not in the log. */
export const sessionSeqOf = ({ payload }: SessionNews): number | undefined => ("sessionSeq" in payload ? payload.sessionSeq : undefined);

/** Public methods of the Gateway Durable Object for sessions. */
export interface GatewayPort extends CronPort, MemoryPort, EventPort, DelegationPort, PackToolPort, TransferPort {
  /** Null when `knownVersion` still holds. */
  runContext(sessionKey: string, knownVersion: string | undefined): Promise<RunContext | null>;
  /** Sets money and tokens aside for the next model calls, and settles those before them. */
  reserveSpend(ask: SpendAsk): Promise<SpendAnswer>;
  /** Null: everything is stopped, and no model may be called. */
  modelAccess(providers: readonly string[]): Promise<ModelAccess | null>;
  /** The stored secrets, longest first: no result of a native tool may contain them (promise S5). Stay in memory. */
  secretValues(): Promise<readonly string[]>;
  /** In order per session. Resolves when handed to the sockets. */
  publish(sessionKey: string, news: readonly SessionNews[]): Promise<void>;
  dispatchTool(dispatch: ToolDispatch): Promise<DispatchOutcome>;
  /** All calls of a session that wait for machines. The gateway tells the session when one of the machines is back (OM5). */
  awaitNodes(report: WaitReport): Promise<WaitAnswer>;
  cancelTools(nodeId: string, callIds: readonly string[], reason: string): Promise<void>;
  /** For native tools: what a client with read scope could see, secrets masked. */
  configGet(path: string | undefined): Promise<Result<unknown>>;
  sessionsList(limit: number): Promise<readonly { sessionKey: string; createdAt: number; lastActiveAt: number; label?: string }[]>;
  nodeLogs(nodeId: string | undefined, lines: number | undefined): Promise<Result<unknown>>;
  /** To the platform that a message came from. `send` is durable in the channel when the result is ok; the others are best effort. */
  reply(call: ReplyCall): Promise<Result<void>>;
  /** Appends an entry. Answers the gateway's context version now, so that a run that goes on need not ask for it. */
  audit(entry: SessionAudit): Promise<string | undefined>;
  /** Those of these grants that hold now; counts their use. A call that a grant allows is not made before. */
  useGrants(sessionKey: string, ids: readonly string[]): Promise<readonly string[]>;
  /** All questions of a session that wait for the owner, and how the last ones ended. */
  approvals(report: ApprovalReport): Promise<void>;
  /** Stops everything, or lets it go on. The session has checked that the owner asks. Returns a sentence for the owner. */
  stopAll(by: string, origin: Origin): Promise<string>;
  resumeAll(by: string, origin: Origin): Promise<string>;
  /** Full-text search. The caller has checked that the requester may see the results. Snippets are redacted. */
  search(input: SearchInput): Promise<Result<SearchAnswer>>;
  /** A page of an agent's conversations, by key, after `afterKey`. */
  searchableSessions(agentId: string, afterKey: string): Promise<SearchableSessions>;
  /** A message of one conversation to another. The caller has checked that it may. */
  sendToSession(input: SessionToSession): Promise<Result<SessionToSessionSent>>;
  /** The conversations on channels to which the agent may write on its own initiative. */
  channelPlaces(query: string, limit: number): Promise<ChannelPlaces>;
  /** A message that the agent sends on its own initiative. Refused for a conversation to which it may not write. */
  message(input: ChannelMessage): Promise<Result<ChannelMessageSent>>;
  /** Reports skills that were found. Pins only those without a pin; returns every pin that applies to the agent. */
  skillsSeen(agentId: string, seen: readonly SeenSkill[]): Promise<readonly SkillPin[]>;
  /**
   * Approves the new digest before a run of the owner changes a skill's file. Fails with `skill.changed` when the skill differs from
   * its approval now.
   */
  skillWriting(writing: SkillWriting): Promise<Result<void>>;
  /** A memory file or a transcript was written: the next recall looks at the files again. */
  filesWritten(): Promise<void>;
  /** Records a change of an agent's file before it is made, so that it can be undone. */
  fileChanging(change: SessionFileChanging): Promise<void>;
}
