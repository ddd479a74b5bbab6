/** What the nodes feature offers to other features: which machines are known and connected. */
import type { NodeEntry, UndoFile } from "../../../protocol/gen/types.ts";
import type { Result } from "./result.ts";
import type { Taint } from "./taint.ts";
import type { ToolEntry } from "./tool-entry.ts";

/** A part of an undo on one machine. */
export interface NodeUndoRequest {
  readonly calls: string;
  readonly undoId: string;
  readonly dryRun: boolean;
  readonly force: boolean;
  readonly beforeSeq?: number;
}
export interface NodeUndoReport {
  readonly files: readonly UndoFile[];
  /** There is more: ask again with this as `beforeSeq`. */
  readonly next?: number;
}
export interface NodeUndoPort {
  readonly nodeUndo: { ask(nodeId: string, request: NodeUndoRequest): Promise<Result<NodeUndoReport>> };
}

/** A command that only reads, for a condition of a heartbeat (rule HB10). */
export interface CommandLook {
  readonly agentId: string;
  readonly nodeId: string;
  readonly command: string;
  /** The label of a conversation that wrote the command. */
  readonly taint?: Taint;
}
export type CommandSeen =
  /** `isTrue`: it ended with 0. */
  | { readonly kind: "ended"; readonly isTrue: boolean }
  /** `why`: a sentence without any text of the command. */
  | { readonly kind: "failed"; readonly why: string }
  /** It can't be run until something is repaired. `why` continues a sentence that begins with the condition. */
  | { readonly kind: "wrong"; readonly why: string };
export interface NodeLooksPort {
  readonly nodeLooks: { look(look: CommandLook): Promise<CommandSeen> };
}

export interface NodesPort {
  readonly nodes: {
    /** All known machines. One that may be about to come back after a restart is `returning`, and not online. */
    list(): readonly NodeEntry[];
    /** The tools of the connected machines. */
    tools(): readonly ToolEntry[];
  };
}
