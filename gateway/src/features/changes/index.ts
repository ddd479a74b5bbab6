/**
 * Records which calls change files: those of the agent's own files before they do, those of machines when they are handed over. Undo reads
 * these records; this feature changes no file.
 */
import { policyClassOf } from "../../../../protocol/gen/lookups.ts";
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { ChangesPort, SessionFileChanging } from "../../ports/changes.ts";
import { CHANGES_MIGRATIONS } from "./migrations.ts";
import { ChangeStore } from "./store.ts";

export type ChangesPorts = Pick<KernelPorts, "database" | "now">;
/** What sessions may call. */
export interface ChangesRpc {
  fileChanging(change: SessionFileChanging): void;
}

/** The tools of machines that change files and whose changes their node keeps. */
const FILE_TOOLS = ["Write", "Edit", "Delete"];
/** A look at a running command is no change. */
const LOOKS = "Process";

export const changesFeature: FeatureDefinition<ChangesPorts, ChangesPort & { readonly changesRpc: ChangesRpc }> = {
  name: "changes",
  migrations: CHANGES_MIGRATIONS,
  create({ database, now }) {
    const store = new ChangeStore(database);
    const changes: ChangesPort["changes"] = {
      called(call) {
        const policyClass = policyClassOf(call.tool);
        const isUndo = call.callId.startsWith("undo/");
        if (isUndo || policyClass === "write_files" || (policyClass === "exec" && call.tool !== LOOKS)) store.called(call);
      },
      changing: (change) => store.changing(change, now()),
      calls: (target, sessionKey) => store.calls(target, sessionKey, now()),
      lastRun: (sessionKey, skip) => store.lastRun(sessionKey, FILE_TOOLS, skip, now()),
      commandsAfter: (sessionKey, callId) => store.commandsAfter(sessionKey, callId, FILE_TOOLS),
      begin: (calls, undoId) => store.begin(calls, undoId, now()),
      finish: (undoId, undone) => store.finish(undoId, undone, now()),
      files: (callIds) => store.files(callIds),
    };
    return {
      offers: {
        changes,
        changesRpc: {
          fileChanging({ sessionKey, runId, tool, ...change }) {
            const of = { ...(sessionKey === undefined ? {} : { sessionKey }), ...(runId === undefined ? {} : { runId }) };
            store.called({ callId: change.callId, ...of, tool, at: now() });
            store.changing(change, now());
          },
        },
      },
    };
  },
};
