/** What the sessions feature offers to other features: which sessions exist, who owns them, and calls to a session. */
import type { PeerKind, PolicyMode, StopState } from "../../../protocol/gen/types.ts";
import type { SearchableSessions } from "./search.ts";
import type { SessionIdentity, SessionPort } from "./session.ts";

/** The content of a session key. `kernel/routing/session-keys.ts` reads and writes keys. */
export type SessionAddress =
  | { readonly form: "main"; readonly agentId: string }
  | { readonly form: "peer"; readonly agentId: string; readonly peer: string }
  | { readonly form: "cron"; readonly agentId: string; readonly jobId: string }
  | { readonly form: "task"; readonly agentId: string; readonly taskId: string }
  | { readonly form: "channel"; readonly agentId: string; readonly channel: string; readonly kind: PeerKind; readonly peer: string }
  | { readonly form: "account"; readonly agentId: string; readonly channel: string; readonly accountId: string; readonly peer: string };

/** A session by its canonical key, parsed. */
export interface NamedSession {
  readonly key: string;
  readonly address: SessionAddress;
}
export interface SessionRecord {
  readonly key: string;
  /** Short random name, the first segment of the session's call ids. */
  readonly ref: string;
  /** Epoch ms. */
  readonly createdAt: number;
  /** A direct message of the owner created the session. Never changes. */
  readonly owned: boolean;
}

/** A session that is being deleted. */
export interface DeletedSession {
  readonly key: string;
  readonly ref: string;
  readonly agentId: string;
}

/** Which sessions exist. Never their content. */
export interface SessionDirectory {
  /** The record of a key that is in use. Creates nothing. */
  find(key: string): SessionRecord | undefined;
  /** The key behind a ref. */
  keyOf(ref: string): string | undefined;
  /** The key that ends with this text. Undefined: none does, or more than one. */
  keyEndingWith(end: string): string | undefined;
  /** Notes that the session is active; creates it when it does not exist. */
  touch(key: string, now: number, owned?: boolean): SessionRecord;
  /** The session's own mode, as it reported it: absent, as configured. */
  setMode(key: string, mode: { readonly mode?: PolicyMode; readonly modeUntil?: number }): void;
  /** Keys that were active since `since` (epoch ms), the last active first. */
  activeSince(since: number, limit: number): readonly string[];
  /** How many sessions each agent has, and when one of them was last active. Agents that were removed are listed too. */
  byAgent(): ReadonlyMap<string, { readonly sessions: number; readonly lastActiveAt: number }>;
  /** Sessions of an agent, after `afterKey` in the order of keys. */
  ofAgent(agentId: string, afterKey: string, limit: number): SearchableSessions;
  /** Keys of an agent's sessions, the last active first. */
  keysOf(agentId: string): readonly string[];
  /** Sessions of an agent that the owner's direct messages made, the last active first. */
  ownedBy(agentId: string, limit: number): readonly string[];
  /** The conversation of an agent at the command line that was active last. */
  atCommandLine(agentId: string): string | undefined;
  /** Whether the session is the owner's: by its name, or because the owner's direct message created it. */
  isOwners(session: NamedSession): boolean;
  /** The identity of a session that gets a message now; creates the session when it does not exist. `owned` counts only then. */
  takeUp(session: NamedSession, now: number, owned?: boolean): SessionIdentity;
  /** The identity of a session that may not exist yet, with `refWhenNew` as its ref. Creates nothing. */
  lookUp(session: NamedSession, refWhenNew: string): SessionIdentity;
}

/** `once`: the answer may have been lost after the effect, and a second effect would be wrong. */
export type Repeat = "repeatable" | "once";
/** Calls a session. A call that failed on the way is made once more when it is repeatable; the second failure rejects. */
export type AskSession = <T>(key: string, ask: (session: SessionPort) => Promise<T>, repeat?: Repeat) => Promise<T>;

/** A state that was restored beside its gateway and has its mark still (rule BK23). */
export interface RestoredCopy {
  readonly id: string;
  /** The command that lets it act. Undefined: an earlier version has started the gateway. */
  readonly resume: string | undefined;
}

/** Whether everything is stopped (rule ST1). */
export interface StopPort {
  readonly stopped: () => StopState | undefined;
  /** Aborted by the next stop: for a call that is begun now. */
  readonly stopSignal: () => AbortSignal;
}

/** Whether every session has answered to the last stop. */
export interface SettledPort {
  readonly stopSettled: () => boolean;
}

/** Notes in the stop that the home was exported (rule MV14). */
export interface ExportedPort {
  readonly noteExported: (at: number) => void;
}

/** What features do at once when everything is stopped. Each answers how many calls and commands of clients it has ended. */
export interface StopListenerPort {
  readonly onStop: (work: () => number) => void;
  /**
   * At each stop and each resume, after its state is stored. What the work writes before it first waits is in the same commit. The answer
   * waits for the work for a short time.
   */
  readonly onStopChange: (work: () => Promise<void>) => void;
}

/** Deletes sessions (rules SD1-SD5). */
export interface DeletionPort {
  /**
   * Marks sessions for deletion, together with `also`, in one transaction. They are refused from then on, and deleted in the background.
   */
  readonly deleteSessions: (keys: readonly string[], also: () => void) => void;
}

export interface SessionsPort {
  readonly sessions: SessionDirectory;
  readonly ask: AskSession;
}
