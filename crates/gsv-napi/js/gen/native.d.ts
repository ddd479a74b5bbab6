// Generated from crates/gsv-napi/src: npm run build --workspace @gsv/node. Do not edit.

export declare class Addon {
  constructor(options: Options);
  /** Adds a tool. Gives what is wrong with it. */
  addTool(definition: Definition): Problem | null;
  /** Runs the node until `close`, or until it can't go on: gives the cause then. Keeps the program running. */
  run(onEvent: (event: Happened) => void, onCall: (call: Call) => void, onStop: (stopped: Stopped) => void): Promise<Problem | null>;
  /** Asks the node to end; `run` then does. */
  close(): void;
  /** The value of a function. `value`: JSON. */
  returned(number: number, value: string): void;
  /** What a function threw. */
  threw(number: number, message: string): void;
  progress(number: number, text: string): void;
}

/** A call for a function. */
export interface Call {
  number: number;
  callId: string;
  tool: string;
  /** JSON. */
  args: string;
}

export interface Definition {
  name: string;
  description: string;
  /** JSON. */
  inputSchema: string;
  idempotent: boolean;
  timeoutMs?: number;
}

export interface Happened {
  kind: "connected" | "disconnected" | "call-started" | "call-ended" | "log";
  gateway?: string;
  text?: string;
  level?: "info" | "warn" | "error";
  retryInMs?: number;
  callId?: string;
  tool?: string;
  outcome?: "ok" | "error" | "cancelled" | "timeout" | "unknown";
  reason?: string;
  tookMs?: number;
}

export interface Options {
  id: string;
  url: string;
  token?: string;
  workspace: string;
  stateDir: string;
  /** GSV's own folders, which no tool reaches. */
  private: Array<string>;
  /** Names of GSV's tools. Absent: all of them. */
  only?: Array<string>;
  allowOutside: boolean;
  home: string;
  configDir: string;
  cacheDir: string;
  /** The program `gsv`. */
  program?: string;
}

/** A mistake, or why a node has ended. `reason` is a row of the error table. */
export interface Problem {
  reason: string;
  message: string;
  hint?: string;
  retryable: boolean;
}

/** A call that has to end. */
export interface Stopped {
  number: number;
  why: "cancelled" | "late" | "closed";
}
