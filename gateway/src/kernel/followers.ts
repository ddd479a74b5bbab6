/**
 * Sockets as subscribers of sessions: which sessions each follows, and events that wait until an earlier answer has been sent (wire rule
 * C5). Decides nothing about who may follow.
 */
import { eventBody } from "./frames.ts";
import type { Connection, Connections } from "./connections.ts";
import { type Dialect, inDialect } from "./dialect.ts";
import type { NewEvent, Sink, Subscriptions } from "./subscriptions.ts";

const MAX_FOLLOWS = 64;
/** Characters of followed keys: with the other fields they must fit the platform's limit for a socket's state. */
const MAX_FOLLOW_CHARS = 8192;
/** Events that may wait for one answer. */
const MAX_HELD = 2000;

interface Follower extends Sink {
  /** Events that wait, by session. */
  readonly held: Map<string, NewEvent[]>;
  /** Sessions that are followed only if a request that is under way succeeds, and those requests. */
  readonly tentative: Map<string, Set<object>>;
  /** Sessions whose thoughts the client asked for. In memory only: it asks again with its next message. */
  readonly thoughts: Set<string>;
}

export class Followers {
  readonly #connections: Connections;
  readonly #subscriptions: Subscriptions;
  readonly #bySocket = new Map<Connection, Follower>();
  /** Texts of published events: each payload is written once for a dialect, however many sockets get it. */
  readonly #bodies: Readonly<Record<Dialect, WeakMap<readonly NewEvent[], readonly string[]>>> = {
    current: new WeakMap(),
    reference: new WeakMap(),
  };

  readonly #spoken = new WeakMap<readonly NewEvent[], readonly NewEvent[]>();

  constructor(connections: Connections, subscriptions: Subscriptions) {
    this.#connections = connections;
    this.#subscriptions = subscriptions;
    connections.onReady = (connection) => this.#restore(connection);
    connections.onGone = (connection) => this.#remove(connection);
    for (const connection of connections.all()) this.#restore(connection);
  }

  /** False: the connection follows as many sessions as it may. */
  follow(connection: Connection, key: string): boolean {
    if (connection.follows.has(key)) return true;
    let characters = key.length;
    for (const followed of connection.follows) characters += followed.length;
    if (connection.follows.size >= MAX_FOLLOWS || characters > MAX_FOLLOW_CHARS) return false;
    if (!this.#subscriptions.add(key, this.#followerOf(connection))) return false;
    connection.follows.add(key);
    this.#connections.save(connection);
    return true;
  }
  /**
   * Follows for a request whose answer is not known yet. The result ends that: with `false` the session is not followed any more, unless
   * it was followed before or another request keeps it. Undefined: as when `follow` gives false.
   */
  tryFollow(connection: Connection, key: string): ((keep: boolean) => void) | undefined {
    const { tentative } = this.#followerOf(connection);
    const known = tentative.get(key);
    if (known === undefined && connection.follows.has(key)) return () => undefined;
    if (!this.follow(connection, key)) return undefined;
    const requests = known ?? new Set();
    const request = {};
    tentative.set(key, requests.add(request));
    return (keep) => {
      // Kept by another request, unfollowed meanwhile, or the connection is gone.
      if (tentative.get(key) !== requests) return;
      requests.delete(request);
      if (keep) tentative.delete(key);
      else if (requests.size === 0) this.unfollow(connection, key);
    };
  }
  unfollow(connection: Connection, key: string): void {
    const follower = this.#bySocket.get(connection);
    follower?.held.delete(key);
    follower?.thoughts.delete(key);
    follower?.tentative.delete(key);
    if (!connection.follows.delete(key)) return;
    if (follower !== undefined) this.#subscriptions.remove(key, follower);
    this.#connections.save(connection);
  }

  /** Whether the connection gets what the model thinks in the runs of the session (rule CT13). */
  wantThoughts(connection: Connection, key: string, wanted: boolean): void {
    const known = this.#bySocket.get(connection)?.thoughts;
    if (wanted) (known ?? this.#followerOf(connection).thoughts).add(key);
    else known?.delete(key);
  }

  /** From here on events of the session wait, until `release`. */
  hold(connection: Connection, key: string): void {
    const { held } = this.#followerOf(connection);
    if (!held.has(key)) held.set(key, []);
  }
  /** Sends the events that waited and that `wanted` accepts. */
  release(connection: Connection, key: string, wanted: (event: NewEvent) => boolean): void {
    // The connection may be gone: then nothing of it is made again.
    const held = this.#bySocket.get(connection)?.held;
    const waiting = held?.get(key) ?? [];
    held?.delete(key);
    this.#connections.send(connection, bodiesIn(connection.dialect, waiting.filter(wanted)));
  }

  #followerOf(connection: Connection): Follower {
    const known = this.#bySocket.get(connection);
    if (known !== undefined) return known;
    const held = new Map<string, NewEvent[]>();
    const thoughts = new Set<string>();
    const follower: Follower = {
      held,
      thoughts,
      tentative: new Map(),
      deliver: (key, published) => {
        const events = thoughts.has(key) ? published : this.#withoutThoughts(published);
        if (events.length === 0) return;
        const waiting = held.get(key);
        if (waiting === undefined) this.#connections.send(connection, this.#bodiesOf(connection.dialect, events));
        else if (waiting.length + events.length <= MAX_HELD) waiting.push(...events);
        else this.#connections.drop(connection, { kind: "slow", text: "too many events wait; connect again" });
      },
    };
    this.#bySocket.set(connection, follower);
    return follower;
  }
  /** The same list where it has none, and one list for all who get none: its texts are written once. */
  #withoutThoughts(events: readonly NewEvent[]): readonly NewEvent[] {
    if (!events.some(isThought)) return events;
    const known = this.#spoken.get(events);
    if (known !== undefined) return known;
    const spoken = events.filter((news) => !isThought(news));
    this.#spoken.set(events, spoken);
    return spoken;
  }
  #bodiesOf(dialect: Dialect, events: readonly NewEvent[]): readonly string[] {
    const known = this.#bodies[dialect].get(events);
    if (known !== undefined) return known;
    const bodies = bodiesIn(dialect, events);
    this.#bodies[dialect].set(events, bodies);
    return bodies;
  }

  /** After a hibernation, subscribes a connection again to the sessions that it followed. */
  #restore(connection: Connection): void {
    for (const key of connection.follows) this.#subscriptions.add(key, this.#followerOf(connection));
  }
  #remove(connection: Connection): void {
    const follower = this.#bySocket.get(connection);
    if (follower === undefined) return;
    for (const key of connection.follows) this.#subscriptions.remove(key, follower);
    follower.held.clear();
    follower.tentative.clear();
    this.#bySocket.delete(connection);
  }
}

/** What a model thinks goes only to those who asked. */
const isThought = ({ event, payload }: NewEvent): boolean =>
  event === "chat" && typeof payload === "object" && payload !== null && "state" in payload && payload.state === "thinking";

function bodiesIn(dialect: Dialect, events: readonly NewEvent[]): readonly string[] {
  return events.map((news) => {
    const { event, payload } = inDialect(dialect, news);
    return eventBody(event, payload);
  });
}
