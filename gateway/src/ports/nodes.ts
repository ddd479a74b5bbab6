/** What the nodes feature offers to other features: which machines are known and connected. */
import type { NodeEntry } from "../../../protocol/gen/types.ts";
import type { ToolEntry } from "./tool-entry.ts";

export interface NodesPort {
  readonly nodes: {
    /** All known machines. One that may be about to come back after a restart is `returning`, and not online. */
    list(): readonly NodeEntry[];
    /** The tools of the connected machines. */
    tools(): readonly ToolEntry[];
  };
}
