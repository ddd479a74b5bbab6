/**
 * Lists a folder of the workspace, with the labels of the names (rule TA14). A file's name has the file's label. A folder's name has the
 * lowest label of the files in it. A folder that was not looked at counts as anyone's.
 */
import type { LabelledListing } from "../../ports/agent-files.ts";
import { failure, type Result } from "../../ports/result.ts";
import { isAbove, type Taint } from "../../ports/taint.ts";
import { type Bucket, guarded } from "../bucket.ts";
import { folderPrefix, parseFolder } from "../keys.ts";
import { isMark } from "../replace.ts";
import { builtinPaths } from "../skills/builtin/index.ts";
import { taintOf } from "../versions.ts";

const MAX_LIST_ENTRIES = 5_000;
/** Folders that are looked at. */
const MAX_FOLDERS = 500;
const AT_ONCE = 8;
/** Pages that are read of a folder whose files all have a label. */
const MAX_PAGES = 4;
const PAGE = 250;
const UNKNOWN: Taint = { label: "world", source: "names of the workspace" };

export interface FolderListing extends LabelledListing {
  /** By path. A file that is built in has none. */
  readonly etags: ReadonlyMap<string, string>;
}

/** A folder of an agent's workspace; for skills with the shared and the built-in ones. */
export async function listFolder(
  bucket: Pick<Bucket, "head" | "list">,
  agentId: string,
  given: string | undefined,
): Promise<Result<FolderListing>> {
  const folder = parseFolder(given);
  if (!folder.ok) return folder;
  const prefix = folderPrefix(agentId, folder.value);
  const base = folderPrefix(agentId, "").length;
  const sources = [{ prefix, cut: base }];
  if (folder.value === "skills" || folder.value.startsWith("skills/")) sources.push({ prefix: `${folder.value}/`, cut: 0 });
  const files = new Set<string>();
  const directories = new Set<string>();
  const labels = new Map<string, Taint>();
  const etags = new Map<string, string>();
  let truncated = false;
  for (const source of sources) {
    let cursor: string | undefined;
    do {
      const page = await guarded("list the folder", () =>
        bucket.list({
          prefix: source.prefix,
          delimiter: "/",
          include: ["customMetadata"],
          ...(cursor === undefined ? {} : { cursor }),
        }),
      );
      if (!page.ok) return page;
      for (const object of page.value.objects) {
        if (object.key.endsWith("/") || isMark(object)) continue;
        const name = object.key.slice(source.cut);
        const taint = taintOf(object);
        files.add(name);
        // A file of the agent comes before a shared one with the same path.
        if (!etags.has(name)) etags.set(name, object.etag);
        if (taint !== undefined) labels.set(name, taint);
      }
      for (const inner of page.value.delimitedPrefixes) directories.add(inner.slice(source.cut).replace(/\/$/, ""));
      cursor = page.value.truncated ? page.value.cursor : undefined;
      if (files.size + directories.size > MAX_LIST_ENTRIES) truncated ||= cursor !== undefined;
    } while (cursor !== undefined && !truncated);
  }
  for (const path of builtinPaths(folder.value)) (path.endsWith("/") ? directories : files).add(path.replace(/\/$/, ""));
  if (folder.value !== "" && files.size === 0 && directories.size === 0) {
    const file = await guarded("be searched", () => bucket.head(prefix.slice(0, -1)));
    if (file.ok && file.value) return failure("path.invalid", `\`${folder.value}\` is a file, not a folder.`);
    return failure("path.not_found", `There is no folder \`${folder.value}\` in the workspace.`);
  }
  return {
    ok: true,
    value: { path: folder.value, files: [...files].sort(), directories: [...directories].sort(), etags, truncated, labels },
  };
}

/** Labels of folders by name. `prefix`: the key prefix of the workspace. Leaves out empty folders and those with a file that has no label. */
export async function folderLabels(
  bucket: Pick<Bucket, "list">,
  prefix: string,
  folders: readonly string[],
): Promise<ReadonlyMap<string, Taint>> {
  const labels = new Map<string, Taint>(folders.slice(MAX_FOLDERS).map((folder) => [folder, UNKNOWN]));
  const waiting = folders.slice(0, MAX_FOLDERS);
  const work = async (): Promise<void> => {
    for (let folder = waiting.shift(); folder !== undefined; folder = waiting.shift()) {
      const taint = await folderLabel(bucket, `${prefix}${folder}/`);
      if (taint !== undefined) labels.set(folder, taint);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return labels;
}

async function folderLabel(bucket: Pick<Bucket, "list">, prefix: string): Promise<Taint | undefined> {
  let lowest: Taint | undefined;
  let cursor: string | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await guarded("list the folder", () =>
      bucket.list({ prefix, limit: PAGE, include: ["customMetadata"], ...(cursor === undefined ? {} : { cursor }) }),
    );
    if (!page.ok) return UNKNOWN;
    for (const object of page.value.objects) {
      if (isMark(object)) continue;
      const taint = taintOf(object);
      if (taint === undefined) return undefined;
      if (lowest === undefined || isAbove(lowest.label, taint.label)) lowest = taint;
    }
    if (!page.value.truncated) break;
    cursor = page.value.cursor;
  }
  return lowest;
}
