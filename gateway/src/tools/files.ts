/**
 * The agent's files as tools see them: the workspace, and skills, of which a run reads only what was approved and the owner's own run
 * changes only what it says beforehand (gateway rule SK4).
 */
import type { NativeToolContext, Result } from "../ports.ts";
import { sha256Of, skillPath } from "../skills/folder.ts";
import { readSkillFile } from "../skills/read.ts";
import { Turns } from "../skills/turns.ts";
import type { Bucket } from "../workspace/bucket.ts";
import { parsePath } from "../workspace/keys.ts";
import { type ChangeOptions, createWorkspaceStore, type WorkspaceStore } from "../workspace/store.ts";

export interface Files extends WorkspaceStore {
  /** A skill's file, only as it was approved; undefined when the path is none in the bucket. */
  skill(path: string, context: NativeToolContext): Promise<Result<string> | undefined>;
  /** A change in the owner's name. Changes of one skill's files wait for each other. */
  change<T>(path: string, context: NativeToolContext, work: (options: ChangeOptions) => Promise<T>): Promise<T>;
}

export function createFiles(bucket: Bucket): Files {
  const turns = new Turns();
  return {
    ...createWorkspaceStore(bucket),
    async skill(given, { identity, gateway, now }) {
      const path = parsePath(given);
      return path.ok ? readSkillFile(bucket, gateway, identity.agentId, path.value, now) : undefined;
    },
    change(given, { identity, gateway }, work) {
      // Kept with what a run writes, so that its versions say who wrote them.
      const by = `agent:${identity.key}`;
      const options: ChangeOptions = {
        by,
        before: async (path, content) => {
          if (skillPath(path) === undefined) return { ok: true, value: undefined };
          const after = content === undefined ? {} : { sha256: await sha256Of(content) };
          return gateway.skillWriting({ agentId: identity.agentId, path, by, ...after });
        },
      };
      const path = parsePath(given);
      const asked = path.ok ? skillPath(path.value) : undefined;
      return asked === undefined ? work(options) : turns.take(asked.name, () => work(options));
    },
  };
}
