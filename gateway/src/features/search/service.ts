/**
 * Runs an agent's searches with one catch-up at a time. A search during a catch-up waits for the next one, which starts later and
 * so sees everything written before the search; a waiting search stops a background catch-up. The alarm continues unfinished
 * catch-ups. Must not depend on the platform; its Durable Object is in search-index-do.ts.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { type After, within } from "../../../../protocol/runtime/within.ts";
import type { SearchFound, SearchPort, SearchRequest } from "../../ports/search.ts";
import { catchUp, followMemories, type Report, type Scope, SCOPES } from "./catch-up.ts";
import type { CatchUpPorts, Note } from "./pass.ts";
import { builtInEmbeddings } from "../../embeddings/built-in.ts";
import type { Vector } from "../../ports/embeddings.ts";
import { DIMENSIONS, type Embedder } from "./static-embeddings.ts";
import { MAX_NOTE_CHARS, MAX_NOTES } from "./limits.ts";

export interface ServicePorts extends CatchUpPorts {
  /** Schedules a call of `alarm` after this time. */
  readonly wakeIn: (ms: number) => void;
  readonly after: After;
  /** Turns texts into vectors. Undefined: this deployment has no table of them, and words alone find texts. */
  readonly embedder?: () => Promise<Embedder | undefined>;
}
const STILL_AT_IT = "The index is still catching up, so the newest texts may be missing; search again.";
/** Steps of embedding in one search, of 500 texts each. */
const EMBED_STEPS = 20;
const CONTINUE_MS = 1_000;
/** A file that others than GSV have changed is in a recall after this time. Until then a recall does not list the files again. */
const LISTED_MS = 2_000;
/** Longer than a removal of memories takes. */
const FORGET_MS = 30_000;
/** Time limit of one alarm. A search meanwhile waits for at most one of its steps. */
const ALARM_MS = 10_000;

export class SearchService implements SearchPort {
  readonly #ports: ServicePorts;
  #running: Promise<Report> | undefined;
  #waiting: Promise<Report> | undefined;
  /** What the waiting searches need. */
  #wanted: Wanted = { scope: "rows" };
  #unattended = false;
  #last: Report = { complete: true, isCurrent: false, hasRows: false, notes: [] };
  /** The last pass after which the index had everything that a recall searches. In memory only: without it the next recall looks at the files. */
  #current: { readonly wanted: Wanted; readonly from: number; readonly report: Report } | undefined;
  /** The state of the rows that the index has followed. */
  #rowsState: string | undefined;

  constructor(ports: ServicePorts) {
    this.#ports = ports;
  }

  async query(request: SearchRequest): Promise<SearchFound> {
    const { store } = this.#ports;
    store.prepare(request.agentId);
    // A further page belongs to the same list.
    const wanted = wantedBy(request);
    const caughtUp = request.offset > 0 || this.#isCurrent(wanted) || (await this.#caughtUp(request.agentId, wanted));
    const { question, ...find } = request;
    const near = question === undefined ? undefined : await this.#near(question);
    const found = store.find({ ...find, ...(near === undefined ? {} : { near }), limit: request.limit + 1 });
    const notes = notesFor(request, this.#last.notes);
    return {
      hits: found.slice(0, request.limit),
      more: found.length > request.limit,
      notes: caughtUp ? notes : [STILL_AT_IT, ...notes].slice(0, MAX_NOTES),
    };
  }

  async forget(sessionKey: string, sessionIds: readonly string[]): Promise<void> {
    const { store } = this.#ports;
    if (store.agent() === undefined) return;
    // A catch-up may have read the session before it was deleted.
    await this.#running?.catch(() => undefined);
    store.sources.forget(sessionKey, sessionIds);
    while (!store.removeGone());
  }

  async #near(question: string): Promise<Vector | undefined> {
    const embedder = await this.#embedded();
    const embedded = embedder && (await builtInEmbeddings(embedder, DIMENSIONS).embed([question]));
    return embedded?.ok === true ? embedded.value.vectors[0] : undefined;
  }
  /** The embedder, after it has embedded what waits for it; of a large index a part, and the alarm embeds the rest. */
  async #embedded(): Promise<Embedder | undefined> {
    const { store, embedder, wakeIn } = this.#ports;
    const made = await embedder?.();
    if (made === undefined) return undefined;
    let done = false;
    for (let step = 0; step < EMBED_STEPS && !done; step++) done = store.embedSome(made);
    if (!done) wakeIn(CONTINUE_MS);
    return made;
  }
  async memoriesWillChange(): Promise<void> {
    const { store, now, wakeIn } = this.#ports;
    // Without tables nothing was ever made of them.
    if (store.agent() === undefined) return;
    store.expectMemories(now() + FORGET_MS);
    wakeIn(FORGET_MS);
  }
  /** Throws when something may be left. The alarm goes on with it. */
  async memoriesChanged(): Promise<void> {
    const agentId = this.#ports.store.agent();
    if (agentId === undefined) return;
    // A pass may have read a row before it was removed.
    await this.#running?.catch(() => undefined);
    if (!(await followMemories(agentId, this.#ports))) throw new Error("the index does not follow the memories");
    this.#ports.store.expectMemories(undefined);
  }

  /** Continues unfinished catch-ups. Never throws. */
  async alarm(): Promise<void> {
    const agentId = this.#ports.store.agent();
    if (agentId === undefined || this.#running !== undefined) return;
    this.#unattended = true;
    try {
      await this.#start(agentId, ALARM_MS, { scope: "all" });
    } catch {
      // The next search starts again.
    } finally {
      this.#unattended = false;
    }
    await this.#expected(agentId);
    if (this.#ports.store.isEmbedding()) await this.#embedded().catch(() => undefined);
  }
  /** A removal of memories that was announced may have been cut: the index follows them until the time of the announcement is over. */
  async #expected(agentId: string): Promise<void> {
    const { store, now, wakeIn } = this.#ports;
    const until = store.memoriesExpected();
    if (until === undefined) return;
    const isOver = now() >= until || until > now() + FORGET_MS;
    const followed = await followMemories(agentId, this.#ports).catch(() => false);
    if (followed && isOver) store.expectMemories(undefined);
    else wakeIn(FORGET_MS);
  }

  /** A pass of just now has brought everything up to date, and GSV has written nothing since. */
  #isCurrent({ scope, rowsState, filesState }: Wanted): boolean {
    const current = this.#current;
    if (scope !== "memory" || current === undefined || rowsState === undefined || filesState === undefined) return false;
    const age = this.#ports.now() - current.from;
    if (age < 0 || age >= LISTED_MS || rowsState !== current.wanted.rowsState || filesState !== current.wanted.filesState) return false;
    this.#last = current.report;
    return true;
  }
  /** False when the time ran out; the catch-up then continues in the background. */
  async #caughtUp(agentId: string, wanted: Wanted): Promise<boolean> {
    const done = this.#next(agentId, wanted).then(() => true);
    return within(this.#ports.after, LIMITS.searchIndexMs, done, () => false);
  }
  #next(agentId: string, wanted: Wanted): Promise<Report> {
    if (this.#waiting !== undefined) {
      this.#wanted = both(this.#wanted, wanted);
      return this.#waiting;
    }
    if (this.#running === undefined) return this.#start(agentId, LIMITS.searchIndexMs, wanted);
    this.#wanted = wanted;
    this.#waiting = this.#running
      .catch(() => undefined)
      .then(() => {
        this.#waiting = undefined;
        return this.#start(agentId, LIMITS.searchIndexMs, this.#wanted);
      });
    return this.#waiting;
  }
  #start(agentId: string, ms: number, wanted: Wanted): Promise<Report> {
    const { scope, rowsState } = wanted;
    const { now } = this.#ports;
    const from = now();
    // A clock that is set back must not make a pass endless.
    const enough = (): boolean => Math.abs(now() - from) >= ms || (this.#unattended && this.#waiting !== undefined);
    const running = catchUp(agentId, this.#ports, enough, scope, rowsState !== undefined && rowsState === this.#rowsState)
      .then((report) => {
        // The rows were read after that state was.
        if (report.hasRows && rowsState !== undefined) this.#rowsState = rowsState;
        this.#last = report;
        if (report.isCurrent) this.#current = { wanted, from, report };
        if (!report.complete) this.#ports.wakeIn(CONTINUE_MS);
        return report;
      })
      .finally(() => {
        if (this.#running === running) this.#running = undefined;
      });
    this.#running = running;
    return running;
  }
}

/** What a pass must bring up to date. */
interface Wanted {
  readonly scope: Scope;
  readonly rowsState?: string;
  readonly filesState?: string;
}
/** A search brings up to date only what it searches. */
function wantedBy({ sources, memoryOf, rowsState, filesState }: SearchRequest): Wanted {
  const isOfMemory = memoryOf !== undefined && !sources.includes("sessions");
  const scope = sources.every((source) => source === "memory") ? "rows" : isOfMemory ? "memory" : "all";
  return { scope, ...(rowsState === undefined ? {} : { rowsState }), ...(filesState === undefined ? {} : { filesState }) };
}
const wider = (one: Scope, other: Scope): Scope => (SCOPES.indexOf(one) > SCOPES.indexOf(other) ? one : other);
/** One pass for both. When two states differ, the later one is not known, so their texts are read again. */
const both = (one: Wanted, { scope, rowsState, filesState }: Wanted): Wanted => ({
  scope: wider(one.scope, scope),
  ...(rowsState === undefined || rowsState !== one.rowsState ? {} : { rowsState }),
  ...(filesState === undefined || filesState !== one.filesState ? {} : { filesState }),
});

/** Notes about requested sources that could not be searched. Notes about other sessions are left out. */
function notesFor({ sources, sessionKey, memoryOf }: SearchRequest, notes: readonly Note[]): string[] {
  const texts = notes
    .filter((note) => sources.includes(note.source) && !(memoryOf !== undefined && note.source === "sessions"))
    .filter((note) => sessionKey === undefined || note.sessionKey === undefined || note.sessionKey === sessionKey)
    .map(({ text }) => text.slice(0, MAX_NOTE_CHARS));
  return texts.length <= MAX_NOTES ? texts : [...texts.slice(0, MAX_NOTES - 1), `And ${texts.length - MAX_NOTES + 1} more notes.`];
}
