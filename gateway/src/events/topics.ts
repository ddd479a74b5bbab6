/**
 * The topics of domain events: each feature and each pack brings its own, in one list that is closed before the first request. PURE.
 * Handles no event.
 */
import type { TypeName } from "../../../protocol/gen/explain-table.ts";
import { explainText } from "../../../protocol/runtime/explain.ts";

export interface Topic {
  readonly name: string;
  /** The version of its schema. A changed schema is a new version. */
  readonly version: number;
  /** For the model: what the topic is for, and its fields. */
  readonly doc: string;
  /** The queue of a pack that has one of its own. */
  readonly queue?: string;
  /** Waits for the owner's word before its handler gets it. */
  readonly needsApproval: boolean;
  /** For the owner: what approving and rejecting mean. Absent: it goes to its handler, or not. */
  readonly approval?: string;
  /** What is wrong with a payload, as a sentence; undefined: it fits. */
  readonly problem: (payload: unknown) => string | undefined;
  /** The payload for a person, in one paragraph. */
  readonly text: (payload: unknown) => string;
}
/** Those of the core, and those of the packs that are on: what it has changes with them. */
export type Topics = Pick<ReadonlyMap<string, Topic>, "get" | "has" | "keys" | "values">;
/** The payload of an escalation (rule EV13). */
export interface Question {
  readonly question: string;
  readonly reason: string;
  readonly details: Readonly<Record<string, unknown>>;
}
const ANY: Question = { question: "?", reason: "?", details: {} };
export const questionTopics = (topics: Topics): ReadonlySet<string> =>
  new Set([...topics.values()].flatMap(({ name, problem }) => (problem(ANY) === undefined ? [name] : [])));
const NAME = /^[a-z][a-z0-9_]{0,63}$/;

/** Checks a payload against a type of the contract. */
export const contractProblem =
  <T>(type: TypeName, fits: (value: unknown) => value is T) =>
  (payload: unknown): string | undefined =>
    fits(payload) ? undefined : `The payload does not fit: ${explainText(type, payload)}.`;

/** Mistakes throw, because they are bugs. */
export class TopicList {
  readonly #topics = new Map<string, Topic>();
  #isClosed = false;

  add(owner: string, topics: readonly Topic[]): this {
    for (const topic of topics) {
      if (this.#isClosed) throw new Error(`The list of topics is closed: ${owner} cannot add ${topic.name}.`);
      if (this.#topics.has(topic.name)) throw new Error(`The topic ${topic.name} is registered twice, the second time by ${owner}.`);
      if (!NAME.test(topic.name)) throw new Error(`${owner} gives a topic the name ${topic.name}: only a-z, 0-9 and _, a letter first.`);
      this.#topics.set(topic.name, Object.freeze({ ...topic }));
    }
    return this;
  }
  close(): ReadonlyMap<string, Topic> {
    this.#isClosed = true;
    return new Map(this.#topics);
  }
}

/** One view of the topics of the core and of those that come and go. */
export const allTopics = (core: ReadonlyMap<string, Topic>, others: () => ReadonlyMap<string, Topic>): Topics => ({
  get: (name) => core.get(name) ?? others().get(name),
  has: (name) => core.has(name) || others().has(name),
  keys: () => [...core.keys(), ...others().keys()].values(),
  values: () => [...core.values(), ...others().values()].values(),
});
