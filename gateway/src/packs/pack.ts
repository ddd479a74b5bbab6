/**
 * What a pack is (gateway/spec/packs.md): tools, agents and topics for one kind of business, which the core knows only by these types.
 * The list of packs is closed before the first request. Runs nothing of a pack.
 */
import type { EventEnvelope, PolicyClass } from "../../../protocol/gen/types.ts";
import { headerCharacterProblem } from "../models/key-characters.ts";
import type { Result } from "../ports/result.ts";

/** A setting or a secret of a pack. Both are texts. */
export interface PackSetting {
  /** For people: what it is, with an example. */
  readonly doc: string;
  /** What is wrong with a value, as a sentence; undefined: it fits. */
  readonly problem: (value: string) => string | undefined;
}
/** A pack before its code is loaded: little enough to be part of each start. */
export interface PackDefinition {
  readonly name: string;
  /** For people, in one sentence. */
  readonly doc: string;
  /** The queue of its topics, bound as `EVENTS_{NAME}`. Absent: that of the core. */
  readonly queue?: string;
  readonly settings: Readonly<Record<string, PackSetting>>;
  /** Stored sealed; only the pack's own code gets them. */
  readonly secrets: Readonly<Record<string, PackSetting>>;
  readonly load: () => Promise<PackContent>;
}
export interface PackContent {
  readonly agents: readonly BundledAgent[];
  readonly tools: readonly PackTool[];
  readonly topics: readonly PackTopic[];
}
/** An agent.yaml with the files that it names, as `npm run codegen` bundles them. */
export interface BundledAgent {
  readonly id: string;
  readonly name: string;
  readonly subAgents: readonly string[];
  readonly text: string;
  /** By path beside agent.yaml. */
  readonly files: Readonly<Record<string, string>>;
}

/** What the code of a pack may use of the outside. */
export interface PackContext {
  readonly settings: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
  /** Ends with the time of the call, as `wait` does. */
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** Aborted when the time is over. */
  readonly limit: (ms: number) => AbortSignal;
  readonly wait: (ms: number) => Promise<void>;
  /** Aborted when the call or the handler has no time left: nothing that it does later counts. */
  readonly signal: AbortSignal;
  /** The beginning of a text of others, for people. Stored secrets are masked before it is cut. */
  readonly excerpt: (text: string, chars: number) => string;
  readonly now: () => number;
}
/** What a pack reads for an agent. Changes nothing outside: that is what topics and their handlers are for. */
export interface PackTool {
  readonly name: string;
  /** For the model. */
  readonly description: string;
  readonly policyClass: PolicyClass;
  /** JSON Schema of the arguments. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** A call that was interrupted is made again with the same id (promises P8), so no other tool can be registered. */
  readonly idempotent: true;
  readonly timeoutMs?: number;
  /** What is wrong with arguments, as a sentence. */
  readonly problem: (args: unknown) => string | undefined;
  /** Gets arguments without a problem. `callId` names the call, also when it is made again. */
  readonly run: (args: never, context: PackContext, callId: string) => Promise<Result<unknown>>;
}
export interface PackTopic {
  readonly name: string;
  readonly version: number;
  /** For the model: what the topic is for, and its fields. */
  readonly doc: string;
  readonly needsApproval: boolean;
  readonly problem: (payload: unknown) => string | undefined;
  /** The payload for a person, in one paragraph. */
  readonly text: (payload: unknown) => string;
  /** Gets payloads without a problem. May be called again for one `idempotency_key`, and then changes nothing twice. */
  readonly handle: (event: EventEnvelope, context: PackContext) => Promise<Result<void>>;
}

const NAME = /^[a-z][a-z0-9-]{0,31}$/;
const QUEUE = /^[a-z][a-z0-9-]{0,62}$/;
export type Packs = readonly PackDefinition[];
/** Mistakes throw, because they are bugs. */
export function packList(packs: readonly PackDefinition[]): Packs {
  const names = new Set<string>();
  for (const { name, queue } of packs) {
    if (!NAME.test(name)) throw new Error(`A pack has the name ${name}: only a-z, 0-9 and -, a letter first, at most 32 characters.`);
    if (names.has(name)) throw new Error(`The pack ${name} is listed twice.`);
    if (queue !== undefined && !QUEUE.test(queue)) throw new Error(`The queue of the pack ${name} has the name ${queue}.`);
    names.add(name);
  }
  return Object.freeze([...packs]);
}
/** A secret that is sent in an HTTP header. */
export const headerSecret = (doc: string): PackSetting => ({
  doc,
  problem: (value) => (value.trim() === "" ? "it is empty." : headerCharacterProblem(value)),
});
