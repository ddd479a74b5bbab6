/** The model at the far end: slow, failing or hanging like a real one. Checks that every request is one that a provider would accept. */
import { hashPair } from "../../../protocol/runtime/hash.ts";
import { tokensOfMessages } from "../../src/models/estimate.ts";
import { isMediaBlock, type Message } from "../../src/ports/messages.ts";
import type { ModelOutcome, ModelRequest } from "../../src/ports/model.ts";
import { SUMMARY_SYSTEM } from "../../src/session/summary.ts";
import type { MemoryStore } from "./memory-store.ts";
import type { Rng } from "./rng.ts";
import type { VirtualTime } from "./time.ts";

export interface ModelPorts {
  readonly time: VirtualTime;
  readonly rng: Rng;
  readonly faulty: () => boolean;
  /** What the session has stored, to compare with what the model is shown. */
  readonly disk: MemoryStore;
  /** Tokens; without it the window never fills. */
  readonly window?: number;
  /** The process may die here; throws when it does. */
  readonly border: () => void;
  readonly problem: (what: string) => void;
  /** Makes the same call again and again. */
  readonly stubborn: boolean;
  /** Lets most calls wait for their machines. */
  readonly waits: boolean;
}
const isUntranscribed = (message: Message): boolean =>
  message.role === "user" &&
  typeof message.content !== "string" &&
  message.content.some((block) => isMediaBlock(block) && block.transcript !== `said in ${block.r2Key}`);

export class FakeModel {
  calls = 0;
  #summaries = 0;
  readonly #ports: ModelPorts;

  constructor(ports: ModelPorts) {
    this.#ports = ports;
  }

  call(isDead: () => boolean, request: ModelRequest): Promise<ModelOutcome> {
    this.calls += 1;
    if (request.systemPrompt === SUMMARY_SYSTEM) return this.#summary(isDead, request);
    if (!isDead() && request.messages.some(isUntranscribed))
      this.#ports.problem("the model was asked before a recording was turned into text");
    const problem = requestProblem(request.messages);
    if (problem !== undefined) this.#ports.problem(`the model was asked with a broken history: ${problem}`);
    const state = this.#ports.disk.load();
    if (!isDead() && this.#ports.window === undefined) this.#checkNotes(request, state?.contextFrom ?? 0);
    if (!isDead() && state?.summary && state.compactions === 0)
      this.#ports.problem("the model was shown the summary of another conversation");
    const said = state && state.messageCount + (state.summary ? 1 : 0);
    if (!isDead() && said !== request.messages.length)
      this.#ports.problem(`the model was shown ${request.messages.length} messages of a conversation of ${said}`);
    return new Promise((resolve) => {
      if (isDead()) return;
      try {
        this.#ports.border();
      } catch {
        return;
      }
      const hangs = this.#ports.faulty() && this.#ports.rng.chance(0.02);
      const takes = hangs ? 600_000 : this.#ports.rng.int(5, this.#ports.faulty() && this.#ports.rng.chance(0.1) ? 40_000 : 2_000);
      this.#ports.time.after(takes / 2, () => !isDead() && request.onText("Working "));
      this.#ports.time.after(takes, () => {
        if (isDead() || request.signal.aborted) return;
        try {
          this.#ports.border();
        } catch {
          return;
        }
        resolve(this.#outcome(request));
      });
    });
  }
  /** What the model is to know is in front of the next message of the user. */
  #checkNotes({ messages }: ModelRequest, contextFrom: number): void {
    const rows = this.#ports.disk.everything.filter(({ seq }) => seq >= contextFrom);
    const shown = JSON.stringify(messages);
    for (const [index, row] of rows.entries()) {
      if (row.kind !== "notice" || row.forModel === undefined || !rows.slice(index).some(({ kind }) => kind === "user")) continue;
      if (!shown.includes(JSON.stringify(row.forModel).slice(1, -1)))
        this.#ports.problem(`the model was not shown the note "${row.forModel}"`);
    }
  }
  /** A call for a summary or memories: slow, failing, wordy or mute, like any other. Each fact is told once. */
  #summary(isDead: () => boolean, request: ModelRequest): Promise<ModelOutcome> {
    this.#summaries += 1;
    if (request.messages.length !== 1 || request.tools.length !== 0) this.#ports.problem("a summary was asked for as a conversation");
    const number = this.#summaries;
    return new Promise((resolve) => {
      if (isDead()) return;
      try {
        this.#ports.border();
      } catch {
        return;
      }
      const takes = this.#ports.faulty() && this.#ports.rng.chance(0.03) ? 400_000 : this.#ports.rng.int(5, 2_000);
      this.#ports.time.after(takes, () => {
        if (isDead() || request.signal.aborted) return;
        try {
          this.#ports.border();
        } catch {
          return;
        }
        if (this.#ports.faulty() && this.#ports.rng.chance(0.25)) {
          const retryable = this.#ports.rng.chance(0.8);
          resolve({ kind: "failed", error: { reason: "model.overloaded", message: "The model is overloaded." }, retryable });
          return;
        }
        const memories = this.#ports.rng.chance(0.7) ? `- fact-${number}.` : "";
        const text = `<summary>gist-${number}</summary><memories>${memories}</memories>`;
        const said = this.#ports.faulty() && this.#ports.rng.chance(0.05) ? (this.#ports.rng.chance(0.5) ? "" : "no tags") : text;
        resolve(this.#reply(said, [], tokensOfMessages(request.messages)));
      });
    });
  }
  #outcome(request: ModelRequest): ModelOutcome {
    const { rng: random } = this.#ports;
    const tokens = tokensOfMessages(request.messages);
    if (this.#ports.window !== undefined && (tokens > this.#ports.window || random.chance(this.#ports.faulty() ? 0.03 : 0)))
      return { kind: "failed", error: { reason: "model.context_overflow", message: "Too long." }, retryable: false };
    if (this.#ports.faulty() && random.chance(0.12)) {
      const retryable = random.chance(0.85);
      return {
        kind: "failed",
        error: retryable
          ? { reason: "model.overloaded", message: "The model is overloaded." }
          : { reason: "model.rejected", message: "The provider refused the request." },
        retryable,
        ...(random.chance(0.2) ? { retryAfterMs: random.int(1_000, 90_000) } : {}),
      };
    }
    const depth = request.messages
      .slice(request.messages.findLastIndex((message) => message.role === "user") + 1)
      .filter((message) => message.role === "assistant").length;
    const wantsTools = random.chance(depth === 0 ? 0.6 : depth < 3 ? 0.4 : 0.15);
    const { stubborn } = this.#ports;
    const many = this.#ports.faulty() && random.chance(0.03);
    const count = wantsTools ? (many ? random.int(33, 40) : random.int(1, 3)) : 0;
    const names = ["lap__Bash", "lap__Read", "old__Bash", "old__Read", "gsv__ReadFile", "gsv__WriteFile"];
    const made = Array.from({ length: count }, () => ({
      providerId: random.chance(0.3) ? "call_0" : `p${random.int(0, 1_000)}`,
      name:
        this.#ports.faulty() && random.chance(0.05)
          ? random.pick(["nope__Bash", "lap__Nope", "Bash", "gsv__Nope"])
          : many
            ? "gsv__ReadFile"
            : random.pick(names),
      arguments: { n: random.int(0, 9), ...this.#wait() },
    }));
    // Some messages put the model into a loop, without a random number: older seeds keep their histories.
    const asked = JSON.stringify(request.messages.findLast((message) => message.role === "user"));
    const isStuck = this.#ports.faulty() && hashPair(asked)[0] % 19 === 0;
    const calls = stubborn
      ? [{ providerId: "same", name: "lap__Bash", arguments: { n: 0 } }]
      : isStuck
        ? [{ providerId: "loop", name: "gsv__ReadFile", arguments: { n: 0 } }]
        : made;
    const text =
      calls.length === 0
        ? this.#ports.faulty() && random.chance(0.02)
          ? ""
          : `answer ${this.calls}`
        : random.chance(0.5)
          ? `step ${this.calls}`
          : "";
    return this.#reply(text, calls, tokens);
  }
  #wait(): { readonly wait?: string } {
    const { rng: random, waits } = this.#ports;
    return waits && random.chance(0.8) ? { wait: random.pick(["20s", "90s", "5m", "soon"]) } : {};
  }
  #reply(text: string, calls: Extract<ModelOutcome, { kind: "replied" }>["calls"], tokens: number): ModelOutcome {
    const usage = { input: tokens, output: 5, total: tokens + 5, costUsd: 0.001 };
    return {
      kind: "replied",
      calls,
      usage,
      message: {
        role: "assistant",
        content: [
          ...(text === "" ? [] : [{ type: "text" as const, text }]),
          ...calls.map((call) => ({ type: "toolCall" as const, id: call.providerId, name: call.name, arguments: call.arguments })),
        ],
        api: "sim",
        provider: "sim",
        model: "sim",
        usage,
        stopReason: calls.length > 0 ? "toolUse" : "stop",
        timestamp: this.#ports.time.wall(),
      },
    };
  }
}

/** What any provider would refuse: a call without its one result, a result without a call. */
function requestProblem(messages: readonly Message[]): string | undefined {
  const open = new Set<string>();
  for (const message of messages) {
    if (message.role === "toolResult") {
      if (!open.delete(message.toolCallId)) return `a result for ${message.toolCallId}, which is not open`;
      continue;
    }
    if (open.size > 0) return `${message.role} while ${[...open].join(", ")} have no result`;
    if (message.role === "assistant") {
      for (const block of message.content) {
        if (block.type !== "toolCall") continue;
        if (open.has(block.id)) return `two calls with the id ${block.id}`;
        open.add(block.id);
      }
    }
  }
  if (open.size > 0) return `asked while ${[...open].join(", ")} have no result`;
  if (messages[0]?.role !== "user") return "it does not begin with the user";
  return messages.at(-1)?.role === "assistant" ? "the last word was the model's own" : undefined;
}
