/** What the kernel offers to features. A feature declares the few members that it uses, with `Pick`. Types only. */
import type { Logger } from "../platform/log.ts";
import type { Database } from "../platform/sql.ts";
import type { DeletedSession } from "../ports/sessions.ts";
import type { SpendState } from "../ports/spend.ts";
import type { Audit } from "./audit-store.ts";
import type { Config } from "./config/store.ts";
import type { Connections } from "./connections.ts";
import type { Followers } from "./followers.ts";
import type { SecretBox } from "./secret-box.ts";
import type { Subscriptions } from "./subscriptions.ts";
import type { Tokens } from "./token-store.ts";

/** Random names and digests. */
export interface Ids {
  /** `length` characters of `[a-z2-7]`, five random bits each. */
  name(length: number): string;
  bytes(length: number): Uint8Array;
  sha256(text: string): Promise<string>;
}

export interface KernelPorts {
  readonly database: Database;
  readonly now: () => number;
  readonly ids: Ids;
  readonly log: Logger;
  readonly config: Config;
  readonly tokens: Tokens;
  readonly audit: Audit;
  readonly connections: Connections;
  /** Which sessions each socket follows. */
  readonly followers: Followers;
  readonly subscriptions: Subscriptions;
  /** Masks every stored secret in a text. */
  readonly scrub: (text: string) => string;
  /** Where the beginning of a stored secret starts at the end of a text that may go on; its length where none does. */
  readonly unfinished: (text: string) => number;
  /** The stored secrets. For sessions alone, which hide them in results of their tools. */
  readonly secretValues: () => readonly string[];
  /** Seals secrets that a feature stores itself. */
  readonly secretBox: SecretBox;
  /** Changes whenever RunContext changes, which is what a run gets from the gateway. */
  readonly contextVersion: () => string;
  /** Tells every feature what a session that is being deleted has used. */
  readonly sessionSpent: (session: DeletedSession, spent: SpendState) => void;
  /** Lets every feature remove its rows about a deleted session. */
  readonly sessionGone: (session: DeletedSession) => void;
  /** Sets the object's alarm again. Call it when a deadline may have become earlier. */
  readonly arm: () => void;
  /** The same when nothing else may have changed: this is the one deadline that is new. Costs nothing while the alarm is early enough. */
  readonly armFor: (deadline: number | undefined) => void;
  /** Closes every connection that uses a token; returns how many. */
  readonly closeToken: (tokenId: string, reason: string) => number;
  /** Lets work continue after the answer. A failure is logged. */
  readonly background: (what: string, work: Promise<unknown>) => void;
}
