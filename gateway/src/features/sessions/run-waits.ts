/**
 * Who waits for the end of a run: woken by the very event that ends it, never by another run's. Memory only; whoever waits looks
 * into the session too, before and after, because a life may end in between. No sockets, no clock of its own.
 */
import type { ChatEvent } from "../../../../protocol/gen/types.ts";
import type { SessionNews } from "../../ports/gateway.ts";
import type { RunEnd } from "../../ports/session.ts";

type Ended = Extract<RunEnd, { readonly state: "final" | "error" | "aborted" }>;
export interface RunWait {
  readonly end: Promise<Ended>;
  readonly stop: () => void;
}

export class RunWaits {
  readonly #waiting = new Map<string, Set<(end: Ended) => void>>();

  /** Begin before the run does. Stop it in the end, or it stays for ever. */
  begin(sessionKey: string, runId: string): RunWait {
    const name = nameOf(sessionKey, runId);
    let wake: (end: Ended) => void = () => {};
    const end = new Promise<Ended>((resolve) => {
      wake = resolve;
    });
    const others = this.#waiting.get(name) ?? new Set();
    this.#waiting.set(name, others.add(wake));
    return {
      end,
      stop: () => {
        others.delete(wake);
        if (others.size === 0) this.#waiting.delete(name);
      },
    };
  }
  /** Everything that is told of a session passes here. */
  saw(sessionKey: string, news: readonly SessionNews[]): void {
    if (this.#waiting.size === 0) return;
    for (const item of news) {
      if (item.event !== "chat" || item.payload.runId === undefined) continue;
      const waiting = this.#waiting.get(nameOf(sessionKey, item.payload.runId));
      const end = waiting === undefined ? undefined : endOf(item.payload);
      if (waiting !== undefined && end !== undefined) for (const wake of waiting) wake(end);
    }
  }
}
const nameOf = (sessionKey: string, runId: string): string => `${sessionKey} ${runId}`;
function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((block: unknown) => (isText(block) ? block.text : "")).join("");
}
function endOf(payload: ChatEvent): Ended | undefined {
  switch (payload.state) {
    case "final":
      return { state: payload.state, text: textOf(payload.message.content) };
    case "error":
    case "aborted":
      return { state: payload.state, error: payload.error ?? "" };
    default:
      return undefined;
  }
}
const isText = (block: unknown): block is { readonly text: string } =>
  typeof block === "object" && block !== null && "text" in block && typeof block.text === "string";
