/** Which calls changed files: the records that undo needs (rules UN5, UN6). Never the content of a file. */

/** A call that may change files, on a machine or in an agent's files. */
export interface ChangingCall {
  /** The call, or an undo (`undo/...`). */
  readonly callId: string;
  /** Absent: a client made the call itself. */
  readonly sessionKey?: string;
  readonly runId?: string;
  /** Absent: the agent's files. */
  readonly nodeId?: string;
  /** The bare name of the tool. */
  readonly tool: string;
  /** Epoch ms. */
  readonly at: number;
}
/** A version of an agent's file. `sha256` is absent for a file that is too large to be read whole. */
export interface FileVersion {
  readonly version: string;
  readonly sha256?: string;
}
/** A change of an agent's file that is about to be made. */
export interface FileChanging {
  readonly callId: string;
  readonly agentId: string;
  readonly path: string;
  /** Absent: there was no such file. */
  readonly before?: FileVersion;
  /** sha256 of the new content. Absent: the file is deleted. */
  readonly after?: string;
}
export type SessionFileChanging = FileChanging & Pick<ChangingCall, "sessionKey" | "runId" | "tool">;

export interface ChangesPort {
  readonly changes: {
    /**
     * Call it when the call is handed over, in the same turn of the event loop, and again where the gateway may have ended between the two:
     * a call that is known stays as it is.
     */
    called(call: ChangingCall): void;
    /** Call it before each change; a call that tries again replaces its earlier record. */
    changing(change: FileChanging): void;
    /** Calls of a target, the oldest first: a call or an undo by its id, a run by its id or by `{ref}/r{number}`. */
    calls(target: string, sessionKey: string | undefined): readonly ChangingCall[];
    /**
     * The calls of the newest run of a session that used a tool which changes files, and that is not undone; `skip`: how many such runs are
     * newer than the one that is meant. Empty: there is none.
     */
    lastRun(sessionKey: string, skip: number): readonly ChangingCall[];
    /** Calls of the session's runs after this call that no undo knows, the oldest first: commands on machines. */
    commandsAfter(sessionKey: string, callId: string): readonly ChangingCall[];
    /** Call it before an undo, for its name: an undo that was interrupted goes on under its own (rule UN4). `calls`: what is undone. */
    begin(calls: string, undoId: string): string;
    /**
     * Call it when nothing of an undo is left to be repeated. `undone`: how many files it has undone; absent: it left some that a later
     * undo may do, so that what it undoes does not count as undone.
     */
    finish(undoId: string, undone: number | undefined): void;
    /** The recorded changes of agents' files by these calls, the oldest first. */
    files(callIds: readonly string[]): readonly FileChanging[];
  };
}
