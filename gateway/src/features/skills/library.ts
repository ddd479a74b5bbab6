/**
 * An agent's skills in the bucket: selects one skill per name, reads, writes and removes skills. Must not know approvals; the caller
 * announces a change first. Writes SKILL.md last and deletes it first, so that a partial change never leaves a usable skill.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { failure, type Result } from "../../ports/result.ts";
import { asText, type Bucket, contentTypeFor, guarded } from "../../storage/bucket.ts";
import { cacheOf } from "../../storage/workspace/cache.ts";
import { agentFolder } from "../../storage/keys.ts";
import { byMetadata } from "../../storage/versions.ts";
import { createWorkspaceStore } from "../../storage/workspace/store.ts";
import { builtinFile, BUILTIN_FOLDERS } from "../../storage/skills/builtin/index.ts";
import { inForce, SKILL_FILE, type SkillFolder, sha256Of } from "../../storage/skills/folder.ts";
import { each, rootPrefix, type RootSkills, type SkillRoot } from "../../storage/skills/load.ts";
import type { NewFile } from "../../storage/skills/new-files.ts";

export interface SkillView {
  /** The selected skills, by name. */
  readonly folders: readonly SkillFolder[];
  readonly own: RootSkills;
  readonly global: RootSkills;
}
export interface SkillLibrary {
  /** `fresh`: compare with the bucket now. */
  view(agentId: string, now: number, fresh?: boolean): Promise<Result<SkillView>>;
  root(root: SkillRoot, now: number): Promise<Result<RootSkills>>;
  /** A file of a skill, in the version that was listed; `skill.changed` when it has changed since then. */
  text(agentId: string, folder: SkillFolder, file: string): Promise<Result<string>>;
  /** The same for any kind of file. */
  bytes(agentId: string, folder: SkillFolder, file: string): Promise<Result<Uint8Array<ArrayBuffer>>>;
  /** The beginning of an unusable skill's SKILL.md, for the owner to review. */
  anyText(agentId: string, folder: SkillFolder): Promise<Result<string>>;
  /** `by` is the writer, as files of the workspace name it. */
  put(root: SkillRoot, name: string, files: readonly NewFile[], by: string): Promise<Result<void>>;
  remove(root: SkillRoot, name: string): Promise<Result<number>>;
}

const MAX_REMOVED = 10_000;
const NOTHING: Result<void> = { ok: true, value: undefined };

const rootOf = (agentId: string, scope: "agent" | "global"): SkillRoot => (scope === "agent" ? { scope, agentId } : { scope });

export function createSkillLibrary(bucket: Bucket): SkillLibrary {
  const folders = cacheOf(bucket).skills;
  const store = createWorkspaceStore(bucket);
  const keyOf = (agentId: string, scope: "agent" | "global", name: string, file: string): string =>
    `${rootPrefix(rootOf(agentId, scope))}${name}/${file}`;
  const changed = (name: string) =>
    failure("skill.changed", `The skill \`${name}\` was changed meanwhile.`, `Review it again: \`gsv skills show ${name}\`.`);

  async function keysOf(prefix: string): Promise<string[]> {
    const keys: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await bucket.list({ prefix, ...(cursor === undefined ? {} : { cursor }) });
      keys.push(...page.objects.map(({ key }) => key));
      cursor = page.truncated ? page.cursor : undefined;
    } while (cursor !== undefined && keys.length < MAX_REMOVED);
    return keys;
  }

  /** The files of an agent's own skills keep versions, like every file of the workspace (promises S10). */
  async function place(root: SkillRoot, key: string, bytes: NewFile["bytes"], by: string): Promise<Result<void>> {
    const done =
      root.scope === "agent"
        ? await store.writeBytes(root.agentId, key.slice(agentFolder(root.agentId).length), bytes, LIMITS.skillFilesBytes, { by })
        : await guarded("write the skill", () =>
            bucket.put(key, bytes, { httpMetadata: { contentType: contentTypeFor(key, bytes) }, customMetadata: byMetadata(by) }),
          );
    folders.invalidate(root);
    return done.ok ? NOTHING : done;
  }
  async function drop(root: SkillRoot, key: string): Promise<Result<void>> {
    const gone =
      root.scope === "agent"
        ? await store.delete(root.agentId, key.slice(agentFolder(root.agentId).length))
        : await guarded("delete the skill", () => bucket.delete(key));
    folders.invalidate(root);
    return gone.ok || gone.error.reason === "path.not_found" ? NOTHING : gone;
  }

  /** The file as it was listed. */
  async function listed(agentId: string, { scope, name, files }: SkillFolder, file: string): Promise<Result<Uint8Array<ArrayBuffer>>> {
    const missing = () => failure("path.not_found", `The skill \`${name}\` has no file \`${file}\`.`);
    if (scope === "builtin") {
      const own = builtinFile(`skills/${name}/${file}`);
      return own ? { ok: true, value: new Uint8Array(new TextEncoder().encode(own.content)) } : missing();
    }
    const expected = files.find(({ path }) => path === file);
    if (expected === undefined) return missing();
    const got = await guarded("read the skill", async () => {
      const object = await bucket.get(keyOf(agentId, scope, name, file));
      if (object === null) return null;
      if (object.size === expected.sizeBytes) return object.arrayBuffer();
      await object.body.cancel();
      return null;
    });
    if (!got.ok) return got;
    if (got.value === null) return changed(name);
    const bytes = new Uint8Array(got.value);
    return (await sha256Of(bytes)) === expected.sha256 ? { ok: true, value: bytes } : changed(name);
  }

  return {
    async view(agentId, now, fresh = false) {
      const [own, global] = await Promise.all([
        folders.load({ scope: "agent", agentId }, now, fresh),
        folders.load({ scope: "global" }, now, fresh),
      ]);
      if (!own.ok) return own;
      if (!global.ok) return global;
      return {
        ok: true,
        value: { folders: inForce(own.value.skills, global.value.skills, BUILTIN_FOLDERS), own: own.value, global: global.value },
      };
    },
    root: (root, now) => folders.load(root, now, true),

    async text(agentId, folder, file) {
      const expected = folder.files.find(({ path }) => path === file);
      if (expected !== undefined && expected.sizeBytes > LIMITS.workspaceFileBytes)
        return failure(
          "file.too_large",
          `\`${file}\` of the skill \`${folder.name}\` has ${expected.sizeBytes} bytes; at most ${LIMITS.workspaceFileBytes} can be read at once.`,
        );
      const got = await listed(agentId, folder, file);
      if (!got.ok) return got;
      const text = asText(got.value.buffer);
      return text === undefined
        ? failure("file.binary", `\`${file}\` of the skill \`${folder.name}\` is not text.`)
        : { ok: true, value: text };
    },
    bytes: listed,
    async anyText(agentId, { scope, name }) {
      if (scope === "builtin") return { ok: true, value: builtinFile(`skills/${name}/${SKILL_FILE}`)?.content ?? "" };
      return guarded("read the skill", async () => {
        const object = await bucket
          .get(keyOf(agentId, scope, name, SKILL_FILE), { range: { offset: 0, length: LIMITS.skillBytes } })
          .catch(() => null);
        return object === null ? "" : new TextDecoder().decode(await object.arrayBuffer()).replaceAll("\0", "\ufffd");
      });
    },

    async put(root, name, files, by) {
      const prefix = `${rootPrefix(root)}${name}/`;
      const keep = new Set(files.map(({ path }) => prefix + path));
      const there = await guarded("read the skill", () => keysOf(prefix));
      if (!there.ok) return there;
      const isManual = ({ path }: NewFile): boolean => path === SKILL_FILE;
      const gone = there.value.filter((key) => !keep.has(key));
      for (const step of [
        () => each(gone, (key) => drop(root, key)),
        () =>
          each(
            files.filter((file) => !isManual(file)),
            ({ path, bytes }) => place(root, prefix + path, bytes, by),
          ),
        () => each(files.filter(isManual), ({ path, bytes }) => place(root, prefix + path, bytes, by)),
      ]) {
        const failed = (await step()).find(({ ok }) => !ok);
        if (failed !== undefined) return failed;
      }
      return NOTHING;
    },
    async remove(root, name) {
      const prefix = `${rootPrefix(root)}${name}/`;
      const keys = await guarded("delete the skill", () => keysOf(prefix));
      if (!keys.ok) return keys;
      for (const key of keys.value.toSorted((a, b) => Number(b === prefix + SKILL_FILE) - Number(a === prefix + SKILL_FILE))) {
        const gone = await drop(root, key);
        if (!gone.ok) return gone;
      }
      return { ok: true, value: keys.value.length };
    },
  };
}
