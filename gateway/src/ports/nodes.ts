/** What the nodes feature offers to other features: which machines are known and connected. */
import type { NodeEntry, UndoFile } from "../../../protocol/gen/types.ts";
import type { Result } from "./result.ts";
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

export interface NodesPort {
  readonly nodes: {
    /** All known machines. One that may be about to come back after a restart is `returning`, and not online. */
    list(): readonly NodeEntry[];
    /** The tools of the connected machines. */
    tools(): readonly ToolEntry[];
  };
}
