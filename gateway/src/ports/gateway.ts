/** What a session may ask of the gateway: the public methods of the Gateway Durable Object for sessions. */
import type { ChatEvent, SessionEvent } from "../../../protocol/gen/types.ts";
import type { AuditInput } from "./audit.ts";
import type { ChannelMessage, ChannelMessageSent, ChannelPlaces, ReplyCall } from "./channels.ts";
import type { DispatchOutcome, ToolDispatch } from "./dispatch.ts";
import type { Result } from "./result.ts";
import type { ModelAccess, RunContext } from "./run-context.ts";
import type { SearchAnswer, SearchInput, SearchableSession } from "./search.ts";
import type { SessionToSession, SessionToSessionSent } from "./session-to-session.ts";
import type { SeenSkill, SkillPin, SkillWriting } from "./skills.ts";

/** An event for every client that follows the session. Log events carry `sessionSeq`. */
export type SessionNews =
  | { readonly event: "chat"; readonly payload: ChatEvent }
  | { readonly event: "session"; readonly payload: SessionEvent };

/** The event's place in the session's log; undefined for events that are not of the log. */
export const sessionSeqOf = ({ payload }: SessionNews): number | undefined => ("sessionSeq" in payload ? payload.sessionSeq : undefined);

/** Public methods of the Gateway Durable Object for sessions. */
export interface GatewayPort {
  /** Null when `knownVersion` still holds. */
  runContext(sessionKey: string, knownVersion: string | undefined): Promise<RunContext | null>;
  modelAccess(providers: readonly string[]): Promise<ModelAccess>;
  /** In order per session. Resolves when handed to the sockets. */
  publish(sessionKey: string, news: readonly SessionNews[]): Promise<void>;
  dispatchTool(dispatch: ToolDispatch): Promise<DispatchOutcome>;
  cancelTools(nodeId: string, callIds: readonly string[], reason: string): Promise<void>;
  /** For native tools: what a client with read scope could see, secrets masked. */
  configGet(path: string | undefined): Promise<Result<unknown>>;
  sessionsList(limit: number): Promise<readonly { sessionKey: string; createdAt: number; lastActiveAt: number; label?: string }[]>;
  nodeLogs(nodeId: string | undefined, lines: number | undefined): Promise<Result<unknown>>;
  /** To the platform that a message came from. `send` is durable in the channel when it says ok; the others are courtesies. */
  reply(call: ReplyCall): Promise<Result<void>>;
  audit(entry: AuditInput): Promise<void>;
  /** Full-text search. The caller has checked that the requester may see the results. Snippets are redacted. */
  search(input: SearchInput): Promise<Result<SearchAnswer>>;
  /** Conversations of an agent with a key above `afterKey`, in the order of their keys, a page of them. Empty: that was all. */
  searchableSessions(agentId: string, afterKey: string): Promise<readonly SearchableSession[]>;
  /** A message of one conversation to another. The caller has checked that it may. */
  sendToSession(input: SessionToSession): Promise<Result<SessionToSessionSent>>;
  /** Where the agent may write of itself. */
  channelPlaces(query: string, limit: number): Promise<ChannelPlaces>;
  /** A message that the agent sends of itself. Refused for a place that it may not write to. */
  message(input: ChannelMessage): Promise<Result<ChannelMessageSent>>;
  /** Skills as they were found. Pins what has no pin yet, and nothing else; answers every pin that holds for the agent. */
  skillsSeen(agentId: string, seen: readonly SeenSkill[]): Promise<readonly SkillPin[]>;
  /** Before the owner's own conversation changes a skill's file: what it will be is approved beforehand. `skill.changed` when it is not what was approved now. */
  skillWriting(writing: SkillWriting): Promise<Result<void>>;
}
