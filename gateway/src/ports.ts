/**
 * The interfaces between the gateway's parts. Types only; nothing here runs.
 *
 *   gateway/   knows sockets, tokens, config, nodes      -> talks to a session through SessionPort
 *   session/   knows one conversation and its agent loop -> talks to the gateway through GatewayPort
 *   models/    one model call                             -> ModelClient
 *   workspace/, prompt/, tools/                           -> PromptSource, NativeTools
 *
 * Ports cross Durable Object RPC, where thrown errors lose their class: expected failures are `Result` values.
 */
import type { ErrorReason } from "../../protocol/gen/errors.ts";
import type {
  AgentConfig,
  ChatAbortResult,
  ChatEvent,
  ChatSendResult,
  GsvConfig,
  Media,
  ModelRef,
  NodeEntry,
  NodeExecEventParams,
  OutboundMessage,
  Peer,
  PeerKind,
  SessionCompactResult,
  SearchQueryResult,
  SearchSource,
  SessionEvent,
  SessionGetResult,
  SessionHistoryResult,
  SessionMessagesResult,
  SessionPatchParams,
  SessionPreviewResult,
  SessionPromptResult,
  SessionResetResult,
  SessionStatsResult,
  SessionSubscribeResult,
  ThinkLevel,
  ToolDefinition,
  ToolResultParams,
  Usage,
  Attachment,
} from "../../protocol/gen/types.ts";

// ---------------------------------------------------------------- results

export interface GsvError {
  readonly reason: ErrorReason;
  /** A whole sentence for a person: what happened, what to do. Never a secret. */
  readonly message: string;
  readonly details?: unknown;
}
export type Result<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: GsvError };

// ---------------------------------------------------------------- session, as the gateway sees it

/** Given with every `send`, so that a session that has never been used can write down who it is. */
export interface SessionIdentity {
  /** Canonical key; also the Durable Object's name. */
  readonly key: string;
  /** Short random name, unique in this gateway's life; first segment of every call id. */
  readonly ref: string;
  readonly agentId: string;
  /** The owner's own conversation: private memory may be shown (P5.2, promises S8). */
  readonly isMain: boolean;
}
export interface SessionSend {
  readonly identity: SessionIdentity;
  /** Idempotency key: the sender's messageId, else its runId, else fresh. */
  readonly messageId: string;
  readonly runId: string;
  readonly text: string;
  readonly attachments?: readonly Attachment[];
  /** The text is only text: nothing in it is a command or a directive. */
  readonly verbatim?: true;
  /** With `verbatim`: the words alone, from somebody whose commands count. When they are a command it is done, and the text is not said. */
  readonly command?: string;
  /** Nobody is there to send it again in a better form: a file that can't be taken becomes a note, and the rest is taken. */
  readonly badFilesAsNotes?: true;
  /** It is only to be known: no run answers it. */
  readonly quiet?: true;
  /** Who wrote it, for the audit: `client:<id>`, `channel:<...>`, `session:<key>;hops=<n>`. */
  readonly origin: string;
  /** Where the run's end is sent, beside the clients that follow. */
  readonly reply?: ReplyRoute;
  /** The RunContext's version when the message was handed over: a run that it starts need not ask for what has not changed. */
  readonly contextVersion?: string;
}
/** A conversation on a platform, and the message that is answered. */
export interface ReplyRoute {
  readonly channel: string;
  readonly accountId: string;
  readonly peer: Peer;
  readonly replyToId?: string;
}
export type ToolResultTaken = "taken" | "duplicate" | "late" | "unknown";
export interface NodeChange {
  readonly nodeId: string;
  readonly online: boolean;
  readonly reason?: string;
  /** Calls of this session that the node still answers for; absent when the node has no ledger. */
  readonly calls?: readonly { readonly callId: string; readonly state: "accepted" | "started" | "finished" | "lost" }[];
}
/** Public methods of the Session Durable Object. Each resolves only when what it says is durable. */
export interface SessionPort {
  send(input: SessionSend): Promise<Result<ChatSendResult>>;
  abort(runId: string | undefined): Promise<Result<ChatAbortResult>>;
  /** `nodeId` comes from the authenticated socket: a result from another node than the call's is `unknown`. */
  toolResult(nodeId: string, result: ToolResultParams): Promise<ToolResultTaken>;
  nodeChanged(change: NodeChange): Promise<void>;
  execEvent(nodeId: string, event: NodeExecEventParams): Promise<"taken" | "duplicate" | "unknown">;
  get(): Promise<Result<SessionGetResult>>;
  stats(): Promise<Result<SessionStatsResult>>;
  patch(patch: Omit<SessionPatchParams, "sessionKey">): Promise<Result<{ ok: boolean }>>;
  reset(): Promise<Result<SessionResetResult>>;
  compact(keepMessages: number | undefined): Promise<Result<SessionCompactResult>>;
  history(): Promise<Result<SessionHistoryResult>>;
  preview(limit: number | undefined): Promise<Result<SessionPreviewResult>>;
  /** From `offset` on, as many as fit an answer. */
  messages(offset: number | undefined, limit: number | undefined): Promise<Result<SessionMessagesResult>>;
  /** What the model would get now. `identity` is for a session that nobody has said anything in yet; calls no model, stores nothing. */
  prompt(identity: SessionIdentity): Promise<Result<SessionPromptResult>>;
  /** Log events after `afterSeq` (absent: none, just the present state). */
  events(afterSeq: number | undefined): Promise<Result<SessionSubscribeResult>>;
  /** Messages of the conversation with a number above `afterSeq`, at most `limit` and as many as fit. */
  searchRows(afterSeq: number, limit: number): Promise<Result<SearchRows>>;
  /** Something that people, and with `forModel` the model with the next message, are to know. Once for a key; begins no run. */
  note(input: SessionNote): Promise<void>;
  /** How a run ended, or that it has not. `unknown`: there is no such run, or its end is no longer in the log. */
  runEnd(runId: string): Promise<RunEnd>;
  /** After a restart of the runtime: start whatever is open. Cheap when nothing is. */
  resume(): Promise<{ busy: boolean }>;
}
export interface SessionNote {
  readonly identity: SessionIdentity;
  readonly key: string;
  readonly text: string;
  readonly forModel?: true;
}
export type RunEnd =
  | { readonly state: "final"; readonly text: string }
  | { readonly state: "error" | "aborted"; readonly error: string }
  | { readonly state: "running" | "queued" | "unknown" };

// ---------------------------------------------------------------- gateway, as a session sees it

/** A tool that a run may call, with what the session must know to call it safely. */
export interface ToolBinding {
  /** What the model sees: `laptop__Bash`, `gsv__ReadFile`. */
  readonly definition: ToolDefinition;
  /** Absent for native tools. */
  readonly nodeId?: string;
  /** The node starts a callId at most once, so dispatching again is always safe. */
  readonly ledger: boolean;
}
/** Everything a run needs from the gateway, except secrets. `version` changes when any of it does. */
export interface RunContext {
  readonly version: string;
  /** Effective configuration (defaults merged), secrets removed. */
  readonly config: EffectiveConfig;
  readonly agent: AgentConfig;
  /** Tools of connected nodes that this conversation may use. Native tools are the session's own. */
  readonly tools: readonly ToolBinding[];
  /** Of other conversations than the owner's: only machines that they may use something of, and only that. */
  readonly nodes: readonly NodeEntry[];
  /** What was approved of the agent's skills and of everyone's. Built-in ones need no approval. */
  readonly skillPins: readonly SkillPin[];
}
/** What a skill's files must be for it to be used (promises S10, T14). */
export interface SkillPin {
  readonly scope: "agent" | "global";
  readonly name: string;
  readonly sha256: string;
  /** What the owner was about to make of it; holds as well, and takes the place of `sha256` once it is seen. */
  readonly next?: string;
}
export interface SeenSkill {
  readonly scope: "agent" | "global";
  readonly name: string;
  readonly sha256: string;
}
/** A file of one of the agent's own skills that is about to be changed in the owner's name. */
export interface SkillWriting {
  readonly agentId: string;
  /** `skills/NAME/FILE`. */
  readonly path: string;
  /** Of what the file will be; absent: it is deleted. */
  readonly sha256?: string;
  /** `agent:<session>` or `client:<id>`. */
  readonly by: string;
}
/** What a model call may use. Fetched by effects/call-model only, never stored, never logged. */
export interface ModelAccess {
  readonly apiKeys: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
}
export interface ToolDispatch {
  readonly callId: string;
  readonly sessionKey: string;
  readonly nodeId: string;
  /** Bare name, without the node's prefix. */
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly timeoutMs: number;
}
/** `sent` says the frame was handed to the node's socket, not that it arrived. `refused`: this conversation may not use the tool. */
export type DispatchOutcome = "sent" | "offline" | "refused";
/** An event for every client that follows the session. Log events carry `sessionSeq`. */
export type SessionNews =
  | { readonly event: "chat"; readonly payload: ChatEvent }
  | { readonly event: "session"; readonly payload: SessionEvent };

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
  /** Full-text search. The caller has checked that whoever asks may see what is asked for. Snippets are redacted. */
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
export interface ChannelPlaces {
  readonly channels: readonly string[];
  readonly places: readonly {
    /** What `message` takes. */
    readonly to: string;
    readonly kind: PeerKind;
    readonly name?: string;
    readonly whose: "yours" | "guest" | "group";
    readonly lastWroteAt: number;
  }[];
  readonly more: boolean;
}
export interface ChannelMessage {
  readonly from: SessionIdentity;
  /** Of the tool call: the message is sent once, however often the call runs. */
  readonly callId: string;
  readonly target: { readonly channel: string; readonly accountId?: string; readonly peer: Peer };
  readonly text: string;
  /** In the bucket already. */
  readonly media: readonly Media[];
  readonly replyToId?: string;
}
export interface ChannelMessageSent {
  /** Durable in the channel; what becomes of it later is told to the conversation when it goes wrong. */
  readonly status: "queued";
  readonly deliveryId: string;
  readonly to: string;
  readonly duplicate?: boolean;
}
export interface SessionToSession {
  readonly from: SessionIdentity;
  /** Of the tool call: the message is taken once, however often the call runs. */
  readonly callId: string;
  /** The run in which the tool was called, if any. */
  readonly runId: string | undefined;
  /** As the model wrote it. */
  readonly to: string;
  readonly message: string;
  /** Wait this long for the end of the run that answers it; 0: don't. */
  readonly waitMs: number;
}
export type SessionToSessionSent =
  | { readonly status: "accepted"; readonly runId: string; readonly queued: boolean }
  /** The run goes on; its answer stays in its own conversation. */
  | { readonly status: "running"; readonly runId: string }
  | { readonly status: "answered"; readonly runId: string; readonly answer: string }
  | { readonly status: "failed"; readonly runId: string; readonly error: string };
export type ReplyCall =
  | { readonly kind: "send"; readonly route: ReplyRoute; readonly message: OutboundMessage }
  | { readonly kind: "live"; readonly route: ReplyRoute; readonly deliveryId: string; readonly text: string }
  | { readonly kind: "typing"; readonly route: ReplyRoute; readonly active: boolean };
export interface AuditInput {
  readonly actor: string;
  readonly action: string;
  readonly target?: string;
  readonly decision: "allowed" | "denied" | "failed";
  readonly detail?: string;
  readonly argsHash?: string;
}

/** GsvConfig with every default filled in (config/effective.ts) and every secret removed. */
export interface EffectiveConfig extends GsvConfig {
  readonly model: NonNullable<GsvConfig["model"]> & { readonly provider: string; readonly id: string };
  readonly timeouts: { readonly llmMs: number; readonly toolMs: number };
  readonly limits: { readonly stepsPerRun: number; readonly runMs: number; readonly runCostUsd: number };
  readonly session: NonNullable<GsvConfig["session"]> & { readonly mainKey: string };
  readonly userTimezone: string;
}

// ---------------------------------------------------------------- search

/** A conversation as the search index hears of it. */
export interface SearchableSession {
  readonly key: string;
  readonly lastActiveAt: number;
  /** Nobody has said anything there after this (epoch ms). */
  readonly quietSince: number;
}
/** A page of a conversation's messages. */
export interface SearchRows {
  readonly sessionId: string;
  /** The conversation begins here; what is before it was archived. */
  readonly contextFrom: number;
  readonly nextSeq: number;
  /** It may write more without anybody saying anything. */
  readonly busy: boolean;
  readonly rows: readonly { readonly seq: number; readonly role: string; readonly at: number; readonly text: string }[];
  /** Up to here everything was looked at. */
  readonly upTo: number;
  readonly more: boolean;
}
/** What the gateway asks an agent's index. `match` is an FTS5 expression that search/query.ts made. */
export interface SearchRequest {
  readonly agentId: string;
  readonly match: string;
  readonly sources: readonly SearchSource[];
  /** Only this conversation. */
  readonly sessionKey?: string;
  /** Only what the agent remembers: memory files, and transcripts of conversations with these keys or this prefix. */
  readonly memoryOf?: { readonly keys: readonly string[]; readonly prefix: string };
  readonly limit: number;
  readonly offset: number;
}
export interface SearchPlace {
  readonly kind: SearchSource;
  readonly name: string;
  readonly sessionKey: string | undefined;
  readonly sessionId: string | undefined;
  readonly role: string | undefined;
  readonly at: number;
  readonly position: number;
  readonly score: number;
  /** The whole place, unredacted, with U+E000 and U+E001 around what matches. */
  readonly marked: string;
}
export interface SearchFound {
  readonly hits: readonly SearchPlace[];
  readonly more: boolean;
  readonly notes: readonly string[];
}
/** Public methods of the search index, one for each agent. What fails is thrown: nothing can be lost in it. */
export interface SearchPort {
  query(request: SearchRequest): Promise<SearchFound>;
}
/** What is asked of the gateway. */
export interface SearchInput {
  readonly agentId: string;
  readonly query: string;
  /** Absent: everywhere. */
  readonly sources?: readonly SearchSource[];
  /** Canonical. */
  readonly sessionKey?: string;
  /** Only memory files and transcripts of the owner's own conversations. */
  readonly memoryOnly?: boolean;
  readonly limit?: number;
  readonly offset?: number;
  readonly snippetChars?: number;
}
export type SearchAnswer = SearchQueryResult;

// ---------------------------------------------------------------- models

/** Messages as pi-ai keeps them; the session log stores these as they are (r2-storage-layout, JSONL format). */
export type TextBlock = { readonly type: "text"; readonly text: string };
export type ImageBlock = { readonly type: "image"; readonly data: string; readonly mimeType: string };
/** A stored file in the place of its bytes (P5.6). Told from an ImageBlock by `r2Key`; see `isMediaBlock`. */
export type MediaBlock = {
  readonly type: "image" | "audio" | "video" | "document";
  readonly r2Key: string;
  readonly mimeType: string;
  readonly filename?: string;
  readonly sizeBytes?: number;
  /** What is said in it, or why that is not known. Once it is there it never changes. */
  readonly transcript?: string;
};
/** What a user's message and a tool's result are made of. Image bytes inline only where no bucket was asked (old rows, small tests). */
export type ContentBlock = TextBlock | ImageBlock | MediaBlock;
export const isMediaBlock = (block: { readonly type: string }): block is MediaBlock => "r2Key" in block;
export type ThinkingBlock = {
  readonly type: "thinking";
  readonly thinking: string;
  readonly thinkingSignature?: string;
  readonly redacted?: boolean;
};
export type ToolCallBlock = {
  readonly type: "toolCall";
  readonly id: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly thoughtSignature?: string;
};
export type UserMessage = {
  readonly role: "user";
  readonly content: string | readonly ContentBlock[];
  readonly timestamp: number;
};
export type AssistantMessage = {
  readonly role: "assistant";
  readonly content: readonly (TextBlock | ThinkingBlock | ToolCallBlock)[];
  readonly api: string;
  readonly provider: string;
  readonly model: string;
  readonly usage: Usage;
  readonly stopReason: "stop" | "length" | "toolUse";
  readonly timestamp: number;
};
export type ToolResultMessage = {
  readonly role: "toolResult";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly content: readonly ContentBlock[];
  readonly isError: boolean;
  readonly timestamp: number;
};
export type Message = UserMessage | AssistantMessage | ToolResultMessage;

export interface ModelRequest {
  readonly model: ModelRef;
  readonly config: EffectiveConfig;
  readonly access: ModelAccess;
  readonly systemPrompt: string;
  /** Complete and valid: each tool call has exactly one result before the next assistant message. Hydrated: no MediaBlock in it. */
  readonly messages: readonly Message[];
  readonly tools: readonly ToolDefinition[];
  readonly thinkLevel: ThinkLevel | undefined;
  readonly maxTokens: number | undefined;
  /** Stable per conversation, for provider prompt caches. */
  readonly cacheKey: string;
  /** Whole-call bound in ms; first-byte and idle bounds come from LIMITS. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly now: () => number;
  /** Text as it comes. Called synchronously; must not throw. */
  readonly onText: (text: string) => void;
}
export type ModelOutcome =
  | {
      readonly kind: "replied";
      readonly message: AssistantMessage;
      /** Tool calls in order; arguments are what the model said and may not fit the tool's schema. */
      readonly calls: readonly {
        readonly providerId: string;
        readonly name: string;
        readonly arguments: Readonly<Record<string, unknown>>;
      }[];
      readonly usage: Usage;
    }
  | {
      readonly kind: "failed";
      readonly error: GsvError;
      readonly retryable: boolean;
      readonly retryAfterMs?: number;
      readonly usage?: Usage;
    };
export interface ModelClient {
  /** Whether the model can be shown images. */
  takesImages(model: ModelRef, config: EffectiveConfig): boolean;
  /** Never throws; never yields a tool call from a stream that broke off. */
  call(request: ModelRequest): Promise<ModelOutcome>;
}

// ---------------------------------------------------------------- media, memory

/** A session's media. Keys derive from what names the file, so that doing anything again stores nothing twice. */
export interface SessionMedia {
  /** Attachments as they came. What can't be taken becomes a note in words for the model; a bucket that fails is an error. */
  takeAttachments(input: {
    readonly sessionKey: string;
    readonly messageId: string;
    readonly attachments: readonly Attachment[];
    /** What is wrong with a file is a note as well, and no refusal. */
    readonly badFilesAsNotes?: true;
    readonly now: number;
  }): Promise<Result<{ readonly blocks: readonly MediaBlock[]; readonly notes: readonly string[] }>>;
  /** Images of a tool's result move to the bucket. Never fails: what can't be stored becomes a text that says so. */
  takeResult(input: {
    readonly sessionKey: string;
    readonly callId: string;
    /** The machine that ran the call: what it uploaded for the call may be referred to. Absent for a native tool. */
    readonly nodeId?: string;
    readonly content: readonly ContentBlock[];
    readonly now: number;
  }): Promise<readonly ContentBlock[]>;
  /**
   * Stored files as the model can take them: images as bytes (where it sees any), transcripts and documents as text, the rest as a
   * note. The very same list when there are none.
   */
  hydrate(messages: readonly Message[], images: boolean): Promise<readonly Message[]>;
  /** What is said in a recording. Never throws. */
  transcribe(block: MediaBlock, config: EffectiveConfig, access: ModelAccess, signal: AbortSignal): Promise<Result<string>>;
  /** Everything of the session uploaded before `before` (epoch ms) but what is named in `keep`. Says how many objects went. */
  delete(sessionKey: string, before: number, keep: ReadonlySet<string>): Promise<Result<number>>;
}
/** Daily memory files. */
export interface MemoryFiles {
  /** Once for each `key`, however often it is asked. `date` is YYYY-MM-DD; `text` comes with its heading. */
  append(agentId: string, date: string, text: string, key: string): Promise<Result<{ readonly path: string }>>;
}

// ---------------------------------------------------------------- prompt, workspace, native tools

export interface PromptInput {
  readonly identity: SessionIdentity;
  readonly config: EffectiveConfig;
  readonly agent: AgentConfig;
  readonly nodes: readonly NodeEntry[];
  readonly tools: readonly ToolDefinition[];
  /** From the run context. Absent: the gateway is asked. */
  readonly skillPins?: readonly SkillPin[];
  readonly model: ModelRef;
  readonly systemPromptOverride: string | undefined;
  readonly now: number;
}
/** `layer` is the context layer of P9.2. `system` is the sections joined; byte-identical while nothing changed. */
export interface AssembledPrompt {
  readonly system: string;
  readonly sections: readonly {
    readonly id: string;
    readonly title: string;
    readonly layer: 1 | 2 | 3 | 4 | 5 | 6;
    readonly text: string;
  }[];
}
export interface PromptSource {
  /** No R2 operation when the cache is fresh. */
  assemble(input: PromptInput): Promise<Result<AssembledPrompt>>;
}
export interface NativeToolContext {
  readonly identity: SessionIdentity;
  readonly callId: string;
  /** Absent: a client called the tool itself. */
  readonly runId?: string;
  readonly now: number;
  readonly userTimezone: string;
  readonly gateway: GatewayPort;
}
export interface NativeTools {
  readonly definitions: readonly ToolDefinition[];
  /** Names of those that conversations other than the owner's have too. */
  readonly forGuests: ReadonlySet<string>;
  /** Safe to run again with the same callId (promises P8). Never throws. */
  run(
    name: string,
    args: Readonly<Record<string, unknown>>,
    context: NativeToolContext,
  ): Promise<{ ok: true; result: unknown } | { ok: false; error: GsvError }>;
}
