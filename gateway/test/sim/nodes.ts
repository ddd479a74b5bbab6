/**
 * A node at the far end. With a ledger it starts a call at most once, keeps each result until it is acknowledged and can report what
 * it knows; without one it starts whatever it is sent and forgets. Counts every start.
 */
import type { ToolDispatch } from "../../src/ports/dispatch.ts";
import type { NodeChange } from "../../src/ports/session.ts";
import type { ToolOutcome, ToolResultParams } from "../../../protocol/gen/types.ts";
import { asCallId } from "../../../protocol/gen/types.ts";
import type { Rng } from "./rng.ts";
import type { VirtualTime } from "./time.ts";

export interface NodePorts {
  readonly time: VirtualTime;
  readonly rng: Rng;
  readonly faulty: () => boolean;
  /** Rejects when the session died before it answered. */
  readonly result: (nodeId: string, result: ToolResultParams) => Promise<unknown>;
  readonly changed: (change: NodeChange) => void;
}
interface Call {
  readonly callId: string;
  state: "accepted" | "started" | "finished" | "lost";
  /** The process of the node that accepted it last. */
  process: number;
  readonly tool: string;
  outcome: ToolOutcome;
  text: string;
  released: boolean;
}
export interface Ended {
  readonly callId: string;
  readonly outcome: ToolOutcome;
  readonly text: string;
}
/** A command that goes on in the background after its call has ended. */
export interface Background {
  readonly callId: string;
  readonly processId: string;
}
const processOf = (callId: string): string => `p.${callId.replaceAll("/", ".")}`;

export class FakeNode {
  readonly id: string;
  readonly ledger: boolean;
  online = true;
  /** How often each call was started; the oracle allows one with a ledger. */
  readonly starts = new Map<string, number>();
  /** What really happened, for the oracle. */
  readonly ended: Ended[] = [];
  /** Processes whose end has not been told. */
  readonly background: Background[] = [];
  readonly #ports: NodePorts;
  readonly #calls = new Map<string, Call>();
  /** A new one after each crash of the node's process. */
  #process = 0;
  /** A new one with each connection. */
  #link = 0;

  constructor(id: string, ledger: boolean, ports: NodePorts) {
    this.id = id;
    this.ledger = ledger;
    this.#ports = ports;
  }

  /** A frame on its way; lost when the connection breaks first. */
  dispatch(dispatch: ToolDispatch): void {
    const link = this.#link;
    this.#ports.time.after(this.#ports.rng.int(1, 200), () => {
      if (link === this.#link && this.online) this.#receive(dispatch);
    });
  }
  cancel(callIds: readonly string[]): void {
    const link = this.#link;
    this.#ports.time.after(this.#ports.rng.int(1, 200), () => {
      if (link !== this.#link || !this.online) return;
      for (const callId of callIds) {
        const call = this.#calls.get(callId);
        if (call && (call.state === "started" || call.state === "accepted")) this.#finish(call, "cancelled", `cancelled ${callId}`);
      }
    });
  }
  #receive({ callId, tool }: ToolDispatch): void {
    const known = this.#calls.get(callId);
    if (known && this.ledger) {
      if (known.state === "finished" || known.state === "lost") this.#report(known);
      else if (known.state === "accepted" && known.process !== this.#process) this.#wait(known);
      return;
    }
    const call: Call = { callId, tool, state: "accepted", process: this.#process, outcome: "ok", text: "", released: false };
    this.#calls.set(callId, call);
    this.#wait(call);
  }
  #wait(call: Call): void {
    const process = this.#process;
    call.process = process;
    this.#ports.time.after(this.ledger ? this.#ports.rng.int(0, 50) : 0, () => {
      if (process === this.#process && call.state === "accepted") this.#begin(call);
    });
  }
  #begin(call: Call): void {
    call.state = "started";
    this.starts.set(call.callId, (this.starts.get(call.callId) ?? 0) + 1);
    const { rng, time } = this.#ports;
    const process = this.#process;
    const takes = this.#ports.faulty() && rng.chance(0.05) ? 120_000 : rng.int(5, 6_000);
    time.after(takes, () => {
      if (process !== this.#process || call.state !== "started") return;
      const large = rng.chance(0.03) ? "x".repeat(60_000) : "";
      this.#finish(call, rng.chance(0.9) ? "ok" : "error", `out ${call.callId} ${large}`);
    });
  }
  #finish(call: Call, outcome: ToolOutcome, text: string): void {
    call.state = "finished";
    call.outcome = outcome;
    call.text = text;
    this.ended.push({ callId: call.callId, outcome, text });
    if (this.#inBackground(call)) this.background.push({ callId: call.callId, processId: processOf(call.callId) });
    this.#report(call);
    if (this.#ports.faulty() && this.#ports.rng.chance(0.1)) this.#report(call);
  }

  #inBackground({ outcome, tool }: Call): boolean {
    return this.ledger && outcome === "ok" && tool === "Bash";
  }
  #resultOf(call: Call): unknown {
    if (!this.#inBackground(call)) return call.text;
    return { content: [{ type: "text", text: call.text }], status: "running", sessionId: processOf(call.callId) };
  }
  #report(call: Call): void {
    const link = this.#link;
    const { rng, time } = this.#ports;
    time.after(rng.int(1, 300), () => {
      if (!this.online || link !== this.#link || (call.released && !rng.chance(0.2))) {
        // Without a ledger the result is not kept for the next connection, most of the time.
        if (!this.ledger && !rng.chance(0.5)) call.released = true;
        return;
      }
      const result: ToolResultParams =
        call.outcome === "ok"
          ? { callId: asCallId(call.callId), outcome: "ok", result: this.#resultOf(call) }
          : { callId: asCallId(call.callId), outcome: call.outcome, error: call.text };
      this.#ports.result(this.id, result).then(
        () => {
          call.released = true;
        },
        () => {
          // The answer was lost with the session's incarnation: a node with a ledger says it again.
          if (this.ledger) time.after(1_000, () => !call.released && this.#report(call));
        },
      );
    });
  }

  drop(): void {
    if (!this.online) return;
    this.online = false;
    this.#link += 1;
    this.#ports.changed({ nodeId: this.id, online: false, reason: "closed" });
  }
  connect(): void {
    if (this.online) return;
    this.online = true;
    this.#link += 1;
    const unreleased = [...this.#calls.values()].filter((call) => !call.released);
    const calls = unreleased.map((call) => ({ callId: call.callId, state: call.state }));
    this.#ports.changed({ nodeId: this.id, online: true, ...(this.ledger ? { calls } : {}) });
    for (const call of unreleased) if (call.state === "finished" || call.state === "lost") this.#report(call);
  }
  /** The node's process dies and comes back. Children die with it; what it had only accepted waits to be asked for again (K15). */
  crash(): void {
    this.drop();
    this.#process += 1;
    for (const [callId, call] of this.#calls) {
      if (!this.ledger) this.#calls.delete(callId);
      else if (call.state === "started") {
        call.state = "lost";
        call.outcome = "unknown";
        call.text = `lost ${callId}`;
        this.ended.push({ callId, outcome: "unknown", text: call.text });
      }
    }
  }
  /** Every result has been delivered. */
  get quiet(): boolean {
    return [...this.#calls.values()].every((call) => call.released || (!this.ledger && call.state !== "started"));
  }
}
