/**
 * An agent's searches, one catching up at a time. Whoever searches while one is under way waits for the next, which begins after
 * they came and so sees what they see; a waiting search ends a catching up that nobody waits for. What a search had no time for goes
 * on by the alarm until it is done. Knows no platform; the Durable Object around it is in search-index-do.ts.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { SearchFound, SearchPort, SearchRequest } from "../../ports/search.ts";
import { catchUp, type CatchUpPorts, type Note, type Report } from "./catch-up.ts";
import { MAX_NOTE_CHARS, MAX_NOTES } from "./limits.ts";

export interface ServicePorts extends CatchUpPorts {
  /** Wakes the object, and `alarm` is called, this much later. */
  readonly wakeIn: (ms: number) => void;
  readonly after: (ms: number, work: () => void) => () => void;
}
const STILL_AT_IT = "The index is still catching up, so what is newest may be missing; search again.";
const CONTINUE_MS = 1_000;
/** Of one go of the alarm. Whoever searches meanwhile waits for no more than one step of it. */
const ALARM_MS = 10_000;

export class SearchService implements SearchPort {
  readonly #ports: ServicePorts;
  #running: Promise<Report> | undefined;
  #waiting: Promise<Report> | undefined;
  #unattended = false;
  #last: Report = { complete: true, notes: [] };

  constructor(ports: ServicePorts) {
    this.#ports = ports;
  }

  async query(request: SearchRequest): Promise<SearchFound> {
    const { store } = this.#ports;
    store.prepare(request.agentId);
    // A further page is one of the same list.
    const caughtUp = request.offset > 0 || (await this.#caughtUp(request.agentId));
    const found = store.find({ ...request, limit: request.limit + 1 });
    const notes = notesFor(request, this.#last.notes);
    return {
      hits: found.slice(0, request.limit),
      more: found.length > request.limit,
      notes: caughtUp ? notes : [STILL_AT_IT, ...notes].slice(0, MAX_NOTES),
    };
  }

  /** Goes on with what searches had no time for. Never throws. */
  async alarm(): Promise<void> {
    const agentId = this.#ports.store.agent();
    if (agentId === undefined || this.#running !== undefined) return;
    this.#unattended = true;
    try {
      await this.#start(agentId, ALARM_MS);
    } catch {
      // The next search begins anew.
    } finally {
      this.#unattended = false;
    }
  }

  /** False: it took too long, and goes on without us. */
  async #caughtUp(agentId: string): Promise<boolean> {
    let stop: () => void = () => {};
    const late = new Promise<boolean>((resolve) => {
      stop = this.#ports.after(LIMITS.searchIndexMs, () => resolve(false));
    });
    try {
      return await Promise.race([this.#next(agentId).then(() => true), late]);
    } finally {
      stop();
    }
  }
  #next(agentId: string): Promise<Report> {
    if (this.#waiting !== undefined) return this.#waiting;
    if (this.#running === undefined) return this.#start(agentId, LIMITS.searchIndexMs);
    this.#waiting = this.#running
      .catch(() => undefined)
      .then(() => {
        this.#waiting = undefined;
        return this.#start(agentId, LIMITS.searchIndexMs);
      });
    return this.#waiting;
  }
  #start(agentId: string, ms: number): Promise<Report> {
    const { now } = this.#ports;
    const from = now();
    // A clock that is set back must not make a pass endless.
    const enough = (): boolean => Math.abs(now() - from) >= ms || (this.#unattended && this.#waiting !== undefined);
    const running = catchUp(agentId, this.#ports, enough)
      .then((report) => {
        this.#last = report;
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

/** What could not be searched of that which was asked for, and nothing about other conversations. */
function notesFor({ sources, sessionKey, memoryOf }: SearchRequest, notes: readonly Note[]): string[] {
  const texts = notes
    .filter((note) => sources.includes(note.source) && !(memoryOf !== undefined && note.source === "sessions"))
    .filter((note) => sessionKey === undefined || note.sessionKey === undefined || note.sessionKey === sessionKey)
    .map(({ text }) => text.slice(0, MAX_NOTE_CHARS));
  return texts.length <= MAX_NOTES ? texts : [...texts.slice(0, MAX_NOTES - 1), `And ${texts.length - MAX_NOTES + 1} more like these.`];
}
