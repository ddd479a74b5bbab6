/**
 * Caches the prompt's files in memory per agent, checked by etag. A fresh entry needs no operation on the bucket. An entry
 * older than MAX_AGE_MS, or after our own write, is checked with one list and two conditional reads, and only changed files
 * are read again. When the bucket fails, the earlier content is used. Shared by the whole isolate.
 */
import { BoundedCache } from "../bounded-cache.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { LocalDay } from "../../prompt/dates.ts";
import { type Result, storageFailed } from "../../ports/result.ts";
import { SkillFolders } from "../skills/load.ts";
import { originOf } from "../telling-bucket.ts";
import { type Bucket, decodeStart, hasBody, readStart } from "../bucket.ts";
import { agentFolder, dailyPath, fileKey, MARKER, MEMORY_FOLDER, SESSIONS_FOLDER } from "../keys.ts";

export const MAX_AGE_MS = 15_000;
const MAX_AGENTS = 64;
const MAX_BYTES = 16 * 1024 * 1024;
/** A larger daily file is read in part only, with a second read. */
const MAX_WHOLE_BYTES = 1024 * 1024;

/** Files that the prompt reads, by name. */
export const PROMPT_FILES = [
  "SOUL.md",
  "IDENTITY.md",
  "USER.md",
  "AGENTS.md",
  "MEMORY.md",
  "TOOLS.md",
  "HEARTBEAT.md",
  "BOOTSTRAP.md",
] as const;
/** What defines an agent or shows its history: a folder with one of these files, and without the mark, was filled by a person. */
const HISTORY: ReadonlySet<string> = new Set(["SOUL.md", "IDENTITY.md", "AGENTS.md", "MEMORY.md", MEMORY_FOLDER, SESSIONS_FOLDER]);
/** `names`: of the files and folders (with a slash) of an agent's folder. */
export const hasHistory = (names: readonly string[]): boolean => names.some((name) => HISTORY.has(name));
export type PromptFileName = (typeof PROMPT_FILES)[number];
const isPromptFile = (name: string): name is PromptFileName => PROMPT_FILES.some((known) => known === name);

export interface CachedFile {
  readonly text: string;
  readonly sizeBytes: number;
  readonly etag: string;
}
export interface DailyFile extends CachedFile {
  /** The last of the files that continue a full one: `memory/2026-03-01-2.md` and so on. */
  readonly next?: CachedFile & { readonly path: string };
}
export interface AgentFiles {
  readonly files: ReadonlyMap<PromptFileName, CachedFile>;
  readonly today: DailyFile | undefined;
  readonly yesterday: DailyFile | undefined;
  /** The agent's folder has files that define it, or its history. */
  readonly hasHistory: boolean;
  /** The default files were created, or their creation has begun. */
  readonly marked: boolean;
}
interface Entry extends AgentFiles {
  readonly day: string;
  /** When the entry was last compared with the bucket; -Infinity after our own write. */
  checkedAt: number;
  readonly bytes: number;
}

async function list(bucket: Bucket, agentId: string): Promise<{ objects: readonly R2Object[]; folders: readonly string[] }> {
  const prefix = agentFolder(agentId);
  const objects: R2Object[] = [];
  const folders: string[] = [];
  let cursor: string | undefined;
  // Ten pages are ten thousand files of one folder. In a larger folder the prompt's files must be among the first.
  for (let page = 0; page < 10; page++) {
    const found = await bucket.list({ prefix, delimiter: "/", ...(cursor === undefined ? {} : { cursor }) });
    objects.push(...found.objects);
    folders.push(...found.delimitedPrefixes.map((folder) => folder.slice(prefix.length)));
    if (!found.truncated) break;
    cursor = found.cursor;
  }
  return { objects, folders };
}

/** The file of a day, and where it continues. Costs one read, and one list more when the file may be full. */
async function daily(bucket: Bucket, agentId: string, date: string, known: DailyFile | undefined): Promise<DailyFile | undefined> {
  const path = dailyPath(date);
  const main = await dailyMain(bucket, fileKey(agentId, path), known);
  if (main === undefined || !mayContinue(main)) return main;
  const found = await bucket.list({ prefix: fileKey(agentId, path).replace(/\.md$/, "-"), delimiter: "/" });
  const numbered = found.objects.filter(({ key }) => CONTINUED.test(key));
  const last = numbered.at(-1);
  if (last === undefined) return { text: main.text, sizeBytes: main.sizeBytes, etag: main.etag };
  if (known?.next?.etag === last.etag && known.etag === main.etag && last.key.endsWith(known.next.path)) return known;
  const next = await readStart(bucket, last.key, last.size, LIMITS.injectedFileBytes);
  return { ...main, ...(next === undefined ? {} : { next: { ...next, path: last.key.slice(agentFolder(agentId).length) } }) };
}
/** Neighbours have one digit, so their order is that of the listing. */
const CONTINUED = /-[2-9]\.md$/;
/** A full or binary file gets a neighbour (features/workspace/memory.ts). Files that the prompt shows whole are not full. */
const mayContinue = ({ text, sizeBytes }: CachedFile): boolean => sizeBytes > LIMITS.injectedFileBytes || /[\0\ufffd]/.test(text);

async function dailyMain(bucket: Bucket, key: string, known: DailyFile | undefined): Promise<DailyFile | undefined> {
  const object = await bucket.get(key, known ? { onlyIf: { etagDoesNotMatch: known.etag } } : undefined);
  if (!object) return undefined;
  if (known && object.etag === known.etag) return known;
  if (!hasBody(object)) return known;
  if (object.size > MAX_WHOLE_BYTES) {
    await object.body.cancel();
    return readStart(bucket, key, object.size, LIMITS.injectedFileBytes);
  }
  const bytes = new Uint8Array(await object.arrayBuffer());
  return { text: decodeStart(bytes, LIMITS.injectedFileBytes), sizeBytes: object.size, etag: object.etag };
}

class WorkspaceCache {
  readonly #bucket: Bucket;
  /** The skills, checked separately from the files, because few writes change them. */
  readonly skills: SkillFolders;
  readonly #entries = new BoundedCache<Entry>(MAX_AGENTS, MAX_BYTES);
  /** Rises with each write, so that a load that began earlier does not count as fresh. */
  readonly #generations = new Map<string, number>();

  constructor(bucket: Bucket) {
    this.#bucket = bucket;
    this.skills = new SkillFolders(bucket);
  }
  /** Marks an agent as written, so that the next use compares its files with the bucket. */
  invalidate(agentId: string): void {
    this.#generations.set(agentId, (this.#generations.get(agentId) ?? 0) + 1);
    if (this.#generations.size > MAX_AGENTS * 16) this.#generations.clear();
    const entry = this.#entries.get(agentId);
    if (entry) entry.checkedAt = Number.NEGATIVE_INFINITY;
  }
  async load(agentId: string, day: LocalDay, now: number): Promise<Result<AgentFiles>> {
    const known = this.#entries.get(agentId);
    if (known && known.day === day.today && now - known.checkedAt < MAX_AGE_MS && now >= known.checkedAt) return { ok: true, value: known };
    // Loads are not shared, because a load ends with the request or object that started it.
    return this.#refresh(agentId, day, now, known);
  }

  async #refresh(agentId: string, day: LocalDay, now: number, known: Entry | undefined): Promise<Result<AgentFiles>> {
    const generation = this.#generations.get(agentId) ?? 0;
    const bucket = this.#bucket;
    try {
      const sameDay = known?.day === day.today;
      const [listed, today, yesterday] = await Promise.all([
        list(bucket, agentId),
        daily(bucket, agentId, day.today, sameDay ? known.today : undefined),
        daily(bucket, agentId, day.yesterday, sameDay ? known.yesterday : known?.today),
      ]);
      const prefix = agentFolder(agentId);
      const wanted = listed.objects.flatMap((object) => {
        const name = object.key.slice(prefix.length);
        return isPromptFile(name) ? [{ name, key: object.key, etag: object.etag, size: object.size }] : [];
      });
      const read = await Promise.all(
        wanted.map(async ({ name, key, etag, size }) => {
          const before = known?.files.get(name);
          if (before && before.etag === etag) return [name, before] as const;
          if (size === 0) return [name, { text: "", sizeBytes: 0, etag }] as const;
          return [name, await readStart(bucket, key, size, LIMITS.injectedFileBytes)] as const;
        }),
      );
      const files = new Map<PromptFileName, CachedFile>();
      for (const [name, file] of read) if (file) files.set(name, file);
      const marker = prefix + MARKER;
      const entry: Entry = {
        files,
        today,
        yesterday,
        day: day.today,
        checkedAt: generation === (this.#generations.get(agentId) ?? 0) ? now : Number.NEGATIVE_INFINITY,
        hasHistory: hasHistory([...listed.objects.map(({ key }) => key.slice(prefix.length)), ...listed.folders]),
        marked: listed.objects.some(({ key }) => key === marker),
        bytes: [...files.values(), today, yesterday, today?.next, yesterday?.next].reduce(
          (sum, file) => sum + (file?.text.length ?? 0) * 2,
          0,
        ),
      };
      this.#entries.keep(agentId, entry);
      return { ok: true, value: entry };
    } catch {
      // A run with slightly old files is better than a failed run.
      if (known && known.day === day.today) return { ok: true, value: known };
      return storageFailed("The agent's workspace could not be read.");
    }
  }
}

/** One cache per bucket and isolate, so that every object sees the writes of the others. */
const caches = new WeakMap<Bucket, WorkspaceCache>();
export function cacheOf(bucket: Bucket): WorkspaceCache {
  const origin = originOf(bucket);
  const known = caches.get(origin);
  if (known) return known;
  const cache = new WorkspaceCache(origin);
  caches.set(origin, cache);
  return cache;
}
/** Whether a write of this path makes the cache stale. */
export const isCached = (path: string): boolean => isPromptFile(path) || path.startsWith(MEMORY_FOLDER) || path === MARKER;
