/**
 * Deliver: hands the log's events to clients, in order, at least once; consumers dedupe by `sessionSeq`. New rows come from memory;
 * after a wake they come from the log.
 */
import type { SessionNews } from "../../ports/gateway.ts";
import { rowEvents } from "../events.ts";
import type { EffectOf } from "../machine/effect.ts";
import type { EventBody } from "../machine/event.ts";
import { type LogRow, seqSpan } from "../machine/log.ts";
import type { State } from "../machine/state.ts";
import { backoff, type Flight, type FlightEnd } from "../pump.ts";

export interface DeliverPorts {
  readonly state: () => State | undefined;
  readonly rows: (from: number, limit: number) => readonly LogRow[];
  readonly news: (news: readonly SessionNews[]) => Promise<boolean>;
  readonly commit: (event: EventBody) => void;
}
/** Rows of one hand-over: a row can be a megabyte, and an RPC may have 32. */
const BATCH_ROWS = 16;
const MAX_RETRY_MS = 30_000;
/** After that the next incarnation delivers; clients get everything from the log when they ask. */
const MAX_TRIES = 10;

export class Deliverer {
  readonly #ports: DeliverPorts;
  /** Rows that this incarnation has written and not handed over yet. */
  #recent: LogRow[] = [];
  #published: number;
  #turn: Promise<boolean> = Promise.resolve(true);

  constructor(ports: DeliverPorts, deliveredSeq: number) {
    this.#ports = ports;
    this.#published = deliveredSeq;
  }
  /** Clients have been handed every event up to here. */
  get published(): number {
    return this.#published;
  }
  written(rows: readonly LogRow[]): void {
    this.#recent.push(...rows);
  }

  async deliver(effect: EffectOf<"Deliver">, flight: Flight): Promise<FlightEnd> {
    const { upto } = effect;
    // One after the other: a later one must not overtake one that failed.
    const turn = this.#turn.then(() => this.#flush(upto));
    this.#turn = turn;
    if (!(await turn)) return flight.tries + 1 >= MAX_TRIES ? "done" : backoff(flight.tries, MAX_RETRY_MS);
    const state = this.#ports.state();
    // During a run its next commit includes this; a commit of its own would cost one row more.
    if (state && (state.run.phase === "idle" || state.run.phase === "archiving"))
      this.#ports.commit({ type: "Delivered", upto: this.#published });
    return "done";
  }
  async #flush(upto: number): Promise<boolean> {
    while (this.#published < upto) {
      const rows = this.#next();
      const last = rows.at(-1);
      const key = this.#ports.state()?.identity.key;
      if (!last || key === undefined) return true;
      const ok = await this.#ports.news(rows.flatMap((row) => rowEvents(key, row)));
      if (!ok) return false;
      this.#published = Math.max(this.#published, last.seq + seqSpan(last) - 1);
      this.#recent = this.#recent.filter((row) => row.seq > this.#published);
    }
    return true;
  }
  #next(): readonly LogRow[] {
    const first = this.#recent[0];
    if (first && first.seq <= this.#published + 1) return this.#recent.filter((row) => row.seq > this.#published).slice(0, BATCH_ROWS);
    return this.#ports.rows(this.#published + 1, BATCH_ROWS);
  }
}
