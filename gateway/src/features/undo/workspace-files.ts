/**
 * Undoes changes of agents' files by their versions (rule UN5). Each file is checked and then changed over exactly the version that was
 * checked; the change is recorded first, so it can be undone itself.
 */
import type { UndoFile } from "../../../../protocol/gen/types.ts";
import type { ChangesPort, FileChanging } from "../../ports/changes.ts";
import { failure, type GsvError, type Result, succeed } from "../../ports/result.ts";
import type { SkillApprovals } from "../../ports/skill-approvals.ts";
import { sha256Of } from "../../storage/skills/folder.ts";
import type { ChangeOptions, WorkspaceStore } from "../../storage/workspace/store.ts";
import { ABSENT, actionOf, planSteps, ruleOn, type Step } from "./plan.ts";

export interface WorkspaceUndoPorts extends ChangesPort, SkillApprovals {
  readonly store: WorkspaceStore;
}
export interface Asked {
  readonly undoId: string;
  /** The client, as the versions name it. */
  readonly by: string;
  readonly isAdmin: boolean;
  readonly dryRun: boolean;
  readonly force: boolean;
}
/** Files that are restored at the same time. */
const AT_ONCE = 8;

/** The files by agent, the newest change first. */
export async function undoFiles(
  ports: WorkspaceUndoPorts,
  changes: readonly FileChanging[],
  asked: Asked,
): Promise<ReadonlyMap<string, readonly UndoFile[]>> {
  const steps = planSteps(changes);
  const done: UndoFile[] = [];
  const waiting = [...steps.entries()];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) done[next[0]] = await undoFile(ports, next[1], asked);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  const places = new Map<string, UndoFile[]>();
  for (const [index, { agentId }] of steps.entries()) {
    const file = done[index];
    if (file !== undefined) places.set(agentId, [...(places.get(agentId) ?? []), file]);
  }
  return places;
}

async function undoFile(ports: WorkspaceUndoPorts, step: Step, asked: Asked): Promise<UndoFile> {
  const { agentId, path } = step;
  const file = { path, action: actionOf(step) };
  const failed = ({ reason, message }: GsvError): UndoFile => ({
    ...file,
    outcome: reason === "workspace.conflict" ? "conflict" : reason === "path.not_found" ? "no_copy" : "failed",
    problem: message.slice(0, 8000),
  });
  const state = await ports.store.state(agentId, path);
  if (!state.ok) return failed(state.error);
  const now = state.value === undefined ? ABSENT : state.value.sha256;
  const ruling = ruleOn(step, now, asked.force);
  if (ruling.kind === "unchanged") return { ...file, outcome: "unchanged" };
  if (ruling.kind === "conflict") return { ...file, outcome: "conflict", problem: ruling.problem };
  if (step.before !== undefined) {
    const kept = await ports.store.hasVersion(agentId, path, step.before.version);
    if (!kept.ok) return failed(kept.error);
    if (!kept.value) return { ...file, outcome: "no_copy", problem: "its earlier version is no longer kept" };
  }
  if (asked.dryRun) return { ...file, outcome: "planned" };
  const changed = await ports.skillApprovals.whileWriting(agentId, path, () => restore(ports, step, state.value, asked));
  return changed.ok ? { ...file, outcome: "undone" } : failed(changed.error);
}

function restore(
  { changes, skillApprovals, store }: WorkspaceUndoPorts,
  { agentId, path, before }: Step,
  seen: { readonly version: string; readonly sha256?: string } | undefined,
  { undoId, by, isAdmin }: Asked,
): Promise<Result<unknown>> {
  const options: ChangeOptions = {
    by,
    before: async (path, content, current) => {
      // A deletion has no condition of its own.
      if (current !== undefined && seen !== undefined && store.versionOf(current.object) !== seen.version)
        return failure("workspace.conflict", `\`${path}\` was changed meanwhile.`);
      const after = content === undefined ? {} : { sha256: await sha256Of(content) };
      if (path.startsWith("skills/")) {
        // As every change by a client: it is approved with the change itself (gateway rule SK4).
        if (!isAdmin) return failure("auth.forbidden", "Changing skills needs an admin token.");
        const allowed = await skillApprovals.writing({ agentId, path, by, ...after });
        if (!allowed.ok) return allowed;
      }
      changes.changing({
        callId: undoId,
        agentId,
        path,
        ...(seen === undefined ? {} : { before: seen }),
        ...(after.sha256 === undefined ? {} : { after: after.sha256 }),
      });
      return succeed(undefined);
    },
  };
  if (before === undefined) return store.delete(agentId, path, options);
  return store.restore(agentId, path, before.version, { ...options, ifMatch: seen?.version ?? "absent" });
}
