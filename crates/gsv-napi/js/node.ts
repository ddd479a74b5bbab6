/** A node in this program: its life, its events, and the calls of its tools. What a call may do is not decided here. */
import { EventEmitter } from "node:events";
import { failure, GsvError } from "./errors.ts";
import type { Addon, Call, Happened, Problem, Stopped } from "./gen/native.d.ts";
import { loadAddon } from "./load.ts";
import { type Json, type NodeOptions, readOptions, readTool, type Tool } from "./options.ts";

export interface CallEvent {
  readonly callId: string;
  readonly tool: string;
  readonly phase: "started" | "ended";
  /** Of a call that has ended. */
  readonly outcome?: "ok" | "error" | "cancelled" | "timeout" | "unknown";
  readonly reason?: string;
  readonly tookMs?: number;
}
export interface NodeEvents {
  connected: [event: { readonly gateway: string }];
  /** Also an attempt to connect that failed. */
  disconnected: [event: { readonly reason: string; readonly retryInMs?: number }];
  /** A call of any tool of this node. Without its arguments and its result. */
  call: [event: CallEvent];
  /** A line for a person; all of them are in `node.log` in the state folder. */
  log: [line: { readonly level: "info" | "warn" | "error"; readonly text: string }];
  /** The node was connected and has ended by itself. */
  error: [error: GsvError];
  /** The node has ended. */
  closed: [];
}

const STOPPED = {
  cancelled: { reason: "tool.cancelled", message: "The call was cancelled." },
  late: { reason: "tool.timeout", message: "The time for the call ran out." },
  closed: { reason: "node.closed", message: "The node has ended." },
} as const;

export class Node extends EventEmitter<NodeEvents> {
  readonly #addon: Addon;
  readonly #tools = new Map<string, Tool["run"]>();
  readonly #running = new Map<number, AbortController>();
  #connecting: Promise<void> | undefined;
  /** Ends when the node has. */
  #ended: Promise<void> | undefined;
  #isClosed = false;

  /** Connects nothing yet. Throws `node.bad_options`. */
  constructor(options: NodeOptions) {
    super();
    const read = readOptions(options);
    const NativeNode = loadAddon();
    this.#addon = new NativeNode(read);
  }

  /** Registers a tool, before `connect`. Throws `node.bad_tool`. */
  tool<Args = Record<string, Json>>(tool: Tool<Args>): this {
    const { definition, run } = readTool(tool);
    const problem = this.#addon.addTool(definition);
    if (problem !== null) throw new GsvError(problem);
    this.#tools.set(definition.name, run);
    return this;
  }

  /**
   * Resolves when the node is connected. A gateway that can't be reached is tried again until `close`; a node that is refused rejects,
   * such as with `auth.required`. From then on the node connects again by itself.
   */
  connect(): Promise<void> {
    if (this.#isClosed) return Promise.reject(failure("node.closed", "The node is closed.", "Make a new node to connect again."));
    this.#connecting ??= this.#run();
    return this.#connecting;
  }

  /**
   * Ends the node. The signals of its calls fire at once; what ends within five seconds is reported, now or by the next start with the
   * same state folder. Then nothing of the node keeps the program running.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#abortAll();
    this.#addon.close();
    await this.#ended;
  }

  #run(): Promise<void> {
    return new Promise((connected, failed) => {
      let wasConnected = false;
      const onEvent = (event: Happened): void => {
        if (event.kind === "connected") {
          wasConnected = true;
          connected();
        }
        this.#tell(event);
      };
      const running = this.#addon.run(
        onEvent,
        (call) => void this.#call(call),
        (stopped) => this.#stop(stopped),
      );
      // A mistake of the addon itself ends the node like any other cause.
      const internal = (error: unknown): Problem => ({ reason: "internal", message: messageOf(error), retryable: false });
      this.#ended = running.catch(internal).then((problem) => {
        const wasAsked = this.#isClosed;
        this.#isClosed = true;
        this.#abortAll();
        const error = problem === null ? failure("node.closed", "The node was closed before it was connected.") : new GsvError(problem);
        failed(error);
        // Outside of the promise, so that what a listener throws is not taken for the node's end.
        process.nextTick(() => {
          this.emit("closed");
          if (wasConnected && !wasAsked) this.emit("error", error);
        });
      });
    });
  }

  #abortAll(): void {
    for (const controller of this.#running.values()) controller.abort(new GsvError({ ...STOPPED.closed, retryable: false }));
  }

  #tell(event: Happened): void {
    const { callId = "", tool = "", text = "" } = event;
    switch (event.kind) {
      case "connected":
        this.emit("connected", { gateway: event.gateway ?? "" });
        break;
      case "disconnected":
        this.emit("disconnected", { reason: text, ...(event.retryInMs === undefined ? {} : { retryInMs: event.retryInMs }) });
        break;
      case "call-started":
        this.emit("call", { callId, tool, phase: "started" });
        break;
      case "call-ended":
        this.emit("call", {
          callId,
          tool,
          phase: "ended",
          ...(event.outcome === undefined ? {} : { outcome: event.outcome }),
          ...(event.reason === undefined ? {} : { reason: event.reason }),
          ...(event.tookMs === undefined ? {} : { tookMs: event.tookMs }),
        });
        break;
      case "log":
        this.emit("log", { level: event.level ?? "info", text });
        break;
    }
  }

  async #call({ number, callId, tool, args }: Call): Promise<void> {
    const controller = new AbortController();
    this.#running.set(number, controller);
    try {
      if (this.#isClosed) throw new Error("the node closes, so nothing was run");
      const run = this.#tools.get(tool);
      if (run === undefined) throw new Error(`there is no tool ${tool}`);
      const value = await run(JSON.parse(args) as Record<string, Json>, {
        callId,
        signal: controller.signal,
        progress: (text) => this.#addon.progress(number, String(text)),
      });
      this.#addon.returned(number, toJson(value));
    } catch (error) {
      this.#addon.threw(number, messageOf(error));
    } finally {
      this.#running.delete(number);
    }
  }

  #stop({ number, why }: Stopped): void {
    this.#running.get(number)?.abort(new GsvError({ ...STOPPED[why], retryable: false }));
  }
}

function toJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "null";
  } catch (error) {
    throw new Error(`The tool has run, and its result can't be written as JSON: ${messageOf(error)}`);
  }
}

/** Anything can be thrown. The stack stays here. */
function messageOf(error: unknown): string {
  try {
    const text = error instanceof Error ? error.message || error.name : String(error);
    return text === "" ? "The tool failed and did not say why." : text;
  } catch {
    return "The tool failed and did not say why.";
  }
}
