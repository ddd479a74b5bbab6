/**
 * Loads skills from the bucket and caches them in memory per folder, checked by etag. A fresh entry needs no operation; an older one
 * needs one list and reads of the files with a changed etag. A digest must come from the bytes that were read, never from an etag.
 */
import { BoundedCache } from "../bounded-cache.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { type Result, storageFailed } from "../../ports/result.ts";
import { asText, type Bucket, hasBody } from "../bucket.ts";
import { agentFolder } from "../keys.ts";
import {
  digestOf,
  digestsOf,
  type HashedFile,
  isSkillName,
  NAME_RULE,
  sha256Of,
  sha256OfStream,
  SKILL_FILE,
  type SkillFolder,
  type SkillHead,
} from "./folder.ts";

/** The location of skills: one agent's, or shared by all agents. */
export type SkillRoot = { readonly scope: "agent"; readonly agentId: string } | { readonly scope: "global" };
export const rootPrefix = (root: SkillRoot): string => (root.scope === "agent" ? `${agentFolder(root.agentId)}skills/` : "skills/");

export interface RootSkills {
  readonly skills: readonly SkillFolder[];
  /** When the entry was last compared with the bucket. */
  readonly checkedAt: number;
}
interface CachedFile extends HashedFile {
  readonly etag: string;
}
interface CachedFolder extends SkillFolder {
  readonly files: readonly CachedFile[];
  /** Fingerprint of names, sizes and etags: equal when nothing was changed. */
  readonly mark: string;
}
interface Entry {
  readonly skills: readonly CachedFolder[];
  checkedAt: number;
  readonly bytes: number;
}

export const SKILLS_MAX_AGE_MS = 15_000;
const MAX_ROOTS = 65;
/** More than the names and digests of LIMITS.skills skills with LIMITS.skillFiles files take. */
const MAX_BYTES = 24 * 1024 * 1024;
/** Pages of a thousand objects: LIMITS.skills skills with LIMITS.skillFiles files fit. */
const MAX_PAGES = Math.ceil((LIMITS.skills * LIMITS.skillFiles) / 1000) + 1;
const PARALLEL_READS = 8;
const BROKEN: SkillHead = { description: "", always: false, capabilities: [], bins: [], install: [], problems: [] };

async function listed(bucket: Bucket, prefix: string): Promise<{ folders: Map<string, R2Object[]>; whole: boolean }> {
  const folders = new Map<string, R2Object[]>();
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const found = await bucket.list({ prefix, ...(cursor === undefined ? {} : { cursor }) });
    for (const object of found.objects) {
      const path = object.key.slice(prefix.length);
      const slash = path.indexOf("/");
      // Files outside a skill's folder are not skills; some tools create keys that end with a slash for empty folders.
      if (slash <= 0 || path.endsWith("/")) continue;
      const name = path.slice(0, slash);
      const files = folders.get(name);
      if (files) files.push(object);
      else folders.set(name, [object]);
    }
    if (!found.truncated) return { folders, whole: true };
    cursor = found.cursor;
  }
  return { folders, whole: false };
}

/** Runs `work` on all items with limited concurrency. */
export async function each<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const out: R[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) {
      const item = items[index];
      if (item !== undefined) out[index] = await work(item);
    }
  };
  await Promise.all(Array.from({ length: Math.min(PARALLEL_READS, items.length) }, worker));
  return out;
}

export class SkillFolders {
  readonly #bucket: Bucket;
  readonly #entries = new BoundedCache<Entry>(MAX_ROOTS, MAX_BYTES);
  readonly #generations = new Map<string, number>();

  constructor(bucket: Bucket) {
    this.#bucket = bucket;
  }
  /** Marks a root as written, so that the next use compares it with the bucket. */
  invalidate(root: SkillRoot): void {
    const prefix = rootPrefix(root);
    if (this.#generations.size > MAX_ROOTS * 16) this.#generations.clear();
    this.#generations.set(prefix, (this.#generations.get(prefix) ?? 0) + 1);
    const entry = this.#entries.get(prefix);
    if (entry) entry.checkedAt = Number.NEGATIVE_INFINITY;
  }
  /** `fresh`: always compare with the bucket. Loads are not shared, because a load ends with the request or object that started it. */
  async load(root: SkillRoot, now: number, fresh = false): Promise<Result<RootSkills>> {
    const prefix = rootPrefix(root);
    const known = this.#entries.get(prefix);
    if (!fresh && known && now - known.checkedAt < SKILLS_MAX_AGE_MS && now >= known.checkedAt) return { ok: true, value: known };
    const generation = this.#generations.get(prefix) ?? 0;
    try {
      const { folders, whole } = await listed(this.#bucket, prefix);
      const names = [...folders.keys()].toSorted();
      const before = new Map(known?.skills.map((skill) => [skill.name, skill]));
      const skills = await each([...names.entries()], ([index, name]) =>
        this.#folder(root.scope, prefix, name, folders.get(name) ?? [], before.get(name), index, whole),
      );
      const same =
        known !== undefined && known.skills.length === skills.length && skills.every((skill, index) => skill === known.skills[index]);
      const current = generation === (this.#generations.get(prefix) ?? 0) ? now : Number.NEGATIVE_INFINITY;
      // An unchanged list stays the same object, so that values derived from it stay valid.
      const entry: Entry = { skills: same ? known.skills : skills, checkedAt: current, bytes: sizeOf(skills) };
      this.#entries.keep(prefix, entry);
      return { ok: true, value: { skills: entry.skills, checkedAt: now } };
    } catch {
      // Recent cached skills may be used for reading, but not when the answer must be fresh.
      if (known && !fresh) return { ok: true, value: known };
      return storageFailed("The skills could not be read.");
    }
  }

  async #folder(
    scope: "agent" | "global",
    prefix: string,
    name: string,
    objects: readonly R2Object[],
    known: CachedFolder | undefined,
    index: number,
    whole: boolean,
  ): Promise<CachedFolder> {
    const start = prefix.length + name.length + 1;
    const mark = JSON.stringify([index < LIMITS.skills, whole, ...objects.map(({ key, etag, size }) => [key.slice(start), etag, size])]);
    if (known?.mark === mark) return known;
    const bytes = objects.reduce((sum, { size }) => sum + size, 0);
    const manual = objects.find(({ key }) => key.slice(start) === SKILL_FILE);
    const problems: string[] = [];
    if (index >= LIMITS.skills) problems.push(`It was skipped: there are more than ${LIMITS.skills} skills. Remove some.`);
    if (!whole) problems.push("It was skipped: the folder of skills has too many files. Remove some.");
    if (!isSkillName(name)) problems.push(`The folder's name can't be used. ${NAME_RULE}`);
    if (objects.length > LIMITS.skillFiles) problems.push(`It has ${objects.length} files; a skill has at most ${LIMITS.skillFiles}.`);
    if (bytes > LIMITS.skillFilesBytes) problems.push(`Its files have ${bytes} bytes; at most ${LIMITS.skillFilesBytes} are allowed.`);
    if (manual === undefined) problems.push(`${SKILL_FILE} is missing.`);
    else if (manual.size > LIMITS.skillBytes)
      problems.push(`${SKILL_FILE} has ${manual.size} bytes; at most ${LIMITS.skillBytes} are allowed.`);
    const broken = (...more: readonly string[]): CachedFolder => ({
      scope,
      name,
      files: [],
      sha256: undefined,
      head: BROKEN,
      problems: [...problems, ...more],
      mark,
    });
    if (problems.length > 0 && (problems.length > 1 || manual !== undefined)) return broken();
    const read = await each(objects, async (object): Promise<{ file: CachedFile; text: string | null | undefined } | undefined> => {
      const path = object.key.slice(start);
      const before = known?.files.find((file) => file.path === path);
      // SKILL.md is always parsed again; the digest of any other file stays valid while its etag is unchanged.
      if (before?.etag === object.etag && path !== SKILL_FILE) return { file: before, text: undefined };
      const got = await this.#bucket.get(object.key);
      if (!got || !hasBody(got)) return undefined;
      if (got.size > LIMITS.skillFilesBytes) {
        await got.body.cancel();
        return undefined;
      }
      const { size: sizeBytes, etag } = got;
      // Only SKILL.md is parsed. The other files may be large, so they are never whole in memory.
      if (path !== SKILL_FILE) return { file: { path, sizeBytes, etag, sha256: await sha256OfStream(got.body) }, text: undefined };
      const content = await got.arrayBuffer();
      return { file: { path, sizeBytes, etag, sha256: await sha256Of(new Uint8Array(content)) }, text: asText(content) ?? null };
    });
    const files = read.flatMap((entry) => (entry ? [entry.file] : []));
    if (files.length < objects.length) return { ...broken("Its files are being changed now. Try again."), mark: "" };
    const text = read.find((entry) => entry?.file.path === SKILL_FILE)?.text;
    if (text === null) problems.push(`${SKILL_FILE} is not text.`);
    const sha256 = await digestOf(digestsOf(files));
    return {
      scope,
      name,
      files,
      sha256,
      head: typeof text === "string" ? (await import("./front-matter.lazy.ts")).readHead(text) : BROKEN,
      problems,
      mark,
    };
  }
}
const sizeOf = (skills: readonly CachedFolder[]): number =>
  skills.reduce((sum, { mark, head, files }) => sum + 2 * (mark.length + head.description.length) + files.length * 320, 512);
