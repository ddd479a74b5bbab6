/**
 * The only module that knows the bucket's keys (the storage layout). Every key is built here, from names that
 * were checked here. PURE; must not read or write anything.
 *
 *   agents/{agentId}/{path}                                    the agent's workspace
 *   agents/{agentId}/memory/{YYYY-MM-DD}.md                    daily memory
 *   agents/{agentId}/memory/quarantine/{id}.json               a memory that waits for the owner's review (workspace/quarantine.ts)
 *   agents/{agentId}/sessions/{sessionId}.jsonl.gz             archive of a reset
 *   agents/{agentId}/sessions/{sessionId}-part{time}.jsonl.gz  archive of a compaction
 *   agents/{agentId}/results/{callId}.txt                      full text of a long tool result
 *   agents/{agentId}/skills/{name}/SKILL.md, skills/{name}/SKILL.md
 *   agents/{agentId}/workspace.json                            marks that the default files were created, so that this happens once
 *   media/{sessionKey}/{uuid}.{ext}
 *   media/{sessionKey}/{uuid}.{text,scaled}                    what was read from that file, for models
 *   audit/{YYYY-MM-DD}-{seq}.jsonl.gz                          one day's entries of the audit log, from the entry with this number
 *   transfers/{id}/{part}                                      a part of a file that is being received (workspace/received.ts)
 *   versions/{agentId}/{path}/@{time}-{etag}                   an earlier version of a workspace file (versions.ts)
 */
import { hashPair, hex32 } from "../../../protocol/runtime/hash.ts";
import { utf8Bytes } from "../../../protocol/runtime/utf8.ts";
import { failure, type Failure, type Result } from "../ports/result.ts";

/** A checked path inside an agent's workspace: no leading slash, no empty, `.` or `..` segments. */
export type WorkspacePath = string & { readonly __brand: "WorkspacePath" };

/** A key has at most 1024 bytes (R2), and the keys of versions are the longest. */
const MAX_PATH_BYTES = 880;
/** A file system's limit for a name, minus the embedded bucket's suffix. */
const MAX_SEGMENT_BYTES = 200;
const AGENT_ID = /^[a-z0-9_-]{1,64}$/;
const invalid = (message: string): Failure => failure("path.invalid", message);

/** The folder of an agent, with its slash. The gateway's edge checks the id, so an invalid id here is a bug. */
export function agentFolder(agentId: string): string {
  if (!AGENT_ID.test(agentId)) throw new Error("agent ids are at most 64 of [a-z0-9_-]");
  return `agents/${agentId}/`;
}

/** The segment after decoding it twice, so that no encoding leaves the folder. */
function decoded(segment: string): string[] {
  const out = [segment];
  for (let i = 0; i < 3; i++) {
    const last = out[out.length - 1] ?? "";
    let next: string;
    try {
      next = decodeURIComponent(last);
    } catch {
      next = last.replace(/%(2e|2f|5c|00)/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    }
    if (next === last) break;
    out.push(next);
  }
  return out;
}
function problem(path: string): string | undefined {
  if (path.includes("\0")) return "The path contains a NUL character.";
  if (/[\u0000-\u001f\u007f]/.test(path)) return "The path contains control characters.";
  if (!path.isWellFormed()) return "The path is not valid Unicode.";
  if (path.startsWith("/") || path.startsWith("~") || /^[A-Za-z]:[\\/]/.test(path) || /^[a-z]+:\/\//i.test(path))
    return "The path must be relative to the agent's workspace.";
  if (path.includes("\\")) return "Folders are separated by `/`, not by a backslash.";
  if (utf8Bytes(path) > MAX_PATH_BYTES) return `The path is longer than ${MAX_PATH_BYTES} bytes.`;
  for (const segment of path.split("/")) {
    if (segment === "") return "The path has an empty part.";
    for (const form of decoded(segment)) {
      if (form === "." || form === "..") return "The path must not contain `.` or `..`.";
      if (form !== segment && /[/\\\0]/.test(form)) return "The path must not contain encoded separators.";
    }
    if (VERSION_NAME.test(segment)) return "A part of the path has the form of a file version's name. Choose another name.";
    if (utf8Bytes(segment) > MAX_SEGMENT_BYTES) return `A part of the path is longer than ${MAX_SEGMENT_BYTES} bytes.`;
  }
  return undefined;
}
/** No file may have a version's name, so a version's key is never a folder of another key. */
const VERSION_NAME = /^@\d{13,16}-[0-9A-Za-z_]{1,64}$/;
const isSafe = (path: string): path is WorkspacePath => path !== "" && problem(path) === undefined;

/** Checks the path of a file, as a person or model wrote it. */
export function parsePath(path: string): Result<WorkspacePath> {
  if (path === "") return invalid("The path is empty. Name a file, such as `USER.md`.");
  const trimmed = path.startsWith("./") ? path.slice(2) : path;
  if (trimmed.endsWith("/")) return { ok: false, error: { reason: "path.not_a_file", message: "The path names a folder; name a file." } };
  if (isSafe(trimmed)) return { ok: true, value: trimmed };
  return invalid(problem(trimmed) ?? "The path is invalid.");
}
/** Checks the path of a folder, as a person or model wrote it; "" is the workspace itself. */
export function parseFolder(path: string | undefined): Result<WorkspacePath | ""> {
  if (path === undefined || path === "" || path === "." || path === "./" || path === "/") return { ok: true, value: "" };
  return parsePath(path.endsWith("/") ? path.slice(0, -1) : path);
}

const made = (path: string): WorkspacePath => {
  if (!isSafe(path)) throw new Error("the name is not a valid path");
  return path;
};
export const fileKey = (agentId: string, path: WorkspacePath): string => agentFolder(agentId) + path;
export const folderPrefix = (agentId: string, folder: WorkspacePath | ""): string =>
  agentFolder(agentId) + (folder === "" ? "" : `${folder}/`);

export const MARKER = made("workspace.json");
export const MEMORY_FOLDER = "memory/";
/** Memories that wait for the owner's review. Never searched, never in a prompt. */
export const QUARANTINE_FOLDER = `${MEMORY_FOLDER}quarantine/`;
export const SESSIONS_FOLDER = "sessions/";
const RESULTS_FOLDER = "results/";
/** `date` is YYYY-MM-DD. */
export const dailyPath = (date: string): WorkspacePath => made(`${MEMORY_FOLDER}${date}.md`);
export const quarantinePath = (id: string): WorkspacePath => made(`${QUARANTINE_FOLDER}${id}.json`);
/** The path of a call's full result; `/` in the id becomes `-`. */
export const resultPath = (callId: string): WorkspacePath => made(`${RESULTS_FOLDER}${callId.replaceAll("/", "-")}.txt`);

/** The prefix of all long results of a session; `ref` is the first segment of its call ids. */
export const resultsPrefix = (agentId: string, ref: string): string => `${agentFolder(agentId)}${RESULTS_FOLDER}${ref}-`;

export const archiveKey = (agentId: string, sessionId: string): string => fileKey(agentId, made(`${SESSIONS_FOLDER}${sessionId}.jsonl.gz`));
/** `time` in epoch ms. */
export const partArchiveKey = (agentId: string, sessionId: string, time: number): string =>
  fileKey(agentId, made(`${SESSIONS_FOLDER}${sessionId}-part${time}.jsonl.gz`));

/** The prefix of all archives of an agent's sessions. */
export const archivesPrefix = (agentId: string): string => `${agentFolder(agentId)}${SESSIONS_FOLDER}`;
export interface ArchiveName {
  /** Path in the workspace: `sessions/...`. */
  readonly path: WorkspacePath;
  readonly sessionId: string;
  /** Epoch ms; present for a compaction's part. */
  readonly part?: number;
}
/** Parses an archive's path; undefined when it is not an archive. */
export function parseArchivePath(path: string): ArchiveName | undefined {
  const match = /^sessions\/([^/]{1,150}?)(?:-part(\d{1,16}))?\.jsonl\.gz$/.exec(path);
  if (!match?.[1] || !isSafe(path)) return undefined;
  return { path, sessionId: match[1], ...(match[2] === undefined ? {} : { part: Number(match[2]) }) };
}

/** A version's name: the write time (epoch ms) and the etag. The same content with the same time is the same version. */
export type VersionId = string & { readonly __brand: "VersionId" };
export const versionId = (uploadedAt: number, etag: string): VersionId =>
  `${String(Math.max(0, Math.trunc(uploadedAt))).padStart(13, "0")}-${etag.replace(/[^0-9A-Za-z]/g, "_").slice(0, 64)}` as VersionId;
export function parseVersionId(text: string): { readonly id: VersionId; readonly at: number; readonly etag: string } | undefined {
  if (!VERSION_NAME.test(`@${text}`)) return undefined;
  const dash = text.indexOf("-");
  return { id: text as VersionId, at: Number(text.slice(0, dash)), etag: text.slice(dash + 1) };
}
/** The prefix of a file's versions. Only direct entries with a version's name are versions. */
export const versionsPrefix = (agentId: string, path: WorkspacePath): string => {
  agentFolder(agentId);
  return `versions/${agentId}/${path}/`;
};
export const versionKey = (agentId: string, path: WorkspacePath, id: VersionId): string => `${versionsPrefix(agentId, path)}@${id}`;
/** Undefined when the key is not a version's key. */
export const versionOfKey = (key: string): VersionId | undefined => parseVersionId(key.slice(key.lastIndexOf("/") + 2))?.id;

/** The shared skill's key that a read uses when the agent has no skill of that name; undefined outside `skills/`. */
export const globalSkillKey = (path: WorkspacePath): string | undefined => (path.startsWith("skills/") ? path : undefined);

/** What is stored of a file that is being received. `id` is the id of the transfer. */
export function transferPartsPrefix(id: string): string {
  if (!/^[0-9a-f]{32}$/.test(id)) throw new Error("the id of a transfer has 32 hexadecimal digits");
  return `transfers/${id}/`;
}
/** The embedded bucket lists the folder of a new object: 64 parts a folder keep that short. */
export const transferPartKey = (id: string, part: number): string =>
  `${transferPartsPrefix(id)}${Math.floor(part / 64)}/${String(part).padStart(6, "0")}`;

const EXTENSIONS: Readonly<Record<string, string>> = {
  "image/jpeg": "jpg",
  "image/png": "png",
  "image/gif": "gif",
  "image/webp": "webp",
  "image/svg+xml": "svg",
  "audio/ogg": "ogg",
  "audio/opus": "opus",
  "audio/mpeg": "mp3",
  "audio/mp3": "mp3",
  "audio/mp4": "m4a",
  "audio/m4a": "m4a",
  "audio/wav": "wav",
  "audio/webm": "webm",
  "audio/flac": "flac",
  "video/mp4": "mp4",
  "video/webm": "webm",
  "video/quicktime": "mov",
  "application/pdf": "pdf",
  "application/msword": "doc",
  "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
};
/** By the layout's table; unknown types are `bin`. Parameters (`; charset=...`) are ignored. */
export function extensionFor(mimeType: string): string {
  const type = mimeType.split(";")[0]?.trim().toLowerCase() ?? "";
  return (Object.hasOwn(EXTENSIONS, type) ? EXTENSIONS[type] : undefined) ?? "bin";
}

/** Session keys may be longer than a file name; then a hash replaces the end. */
function keySegment(sessionKey: string): string {
  if (utf8Bytes(sessionKey) <= MAX_SEGMENT_BYTES) return sessionKey;
  return `${sessionKey.slice(0, 150).replace(/[^\x20-\x7e]/g, "_")}~${hashPair(sessionKey).map(hex32).join("")}`;
}
/** The prefix of a session's media. Canonical keys contain no `/`. */
export function mediaPrefix(sessionKey: string): string {
  const segment = keySegment(sessionKey);
  // Percent escapes are part of a canonical key; nothing here decodes them.
  if (!/^[^/\\\u0000-\u0020\u007f]+$/.test(segment) || segment === "." || segment === "..")
    throw new Error("the session key is not canonical");
  return `media/${segment}/`;
}
export function mediaKey(sessionKey: string, uuid: string, mimeType: string): string {
  if (!/^[0-9a-fA-F-]{1,64}$/.test(uuid)) throw new Error("media ids are uuids");
  return `${mediaPrefix(sessionKey)}${uuid}.${extensionFor(mimeType)}`;
}

/** A copy of the audit's entries of one day, from the entry `seq` on. Names sort by time. */
export const auditCopyKey = (day: string, seq: number): string => `${auditCopiesPrefix(day)}-${String(seq).padStart(12, "0")}.jsonl.gz`;
/** `time`: the beginning of a day in ISO form. */
export const auditCopiesPrefix = (time: string): string => {
  if (!/^\d{4}-\d{2}(-\d{2})?$/.test(time)) throw new Error("audit copies are named by a day");
  return `audit/${time}`;
};

/** What is made of a file for models. */
export type DerivedKind = "text" | "scaled";
/** Beside the file, so that it goes with it. */
export const derivedKey = (key: string, kind: DerivedKind): string => `${key.slice(0, key.lastIndexOf("."))}.${kind}`;

const TEXT_TYPES: Readonly<Record<string, string>> = {
  md: "text/markdown; charset=utf-8",
  txt: "text/plain; charset=utf-8",
  json: "application/json",
  jsonl: "application/x-ndjson",
  yaml: "application/yaml",
  yml: "application/yaml",
  toml: "application/toml",
  csv: "text/csv; charset=utf-8",
  xml: "application/xml",
  svg: "image/svg+xml",
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
};
/** The content type of a workspace file, by its name. All of them are text. */
export function contentTypeOf(path: string): string {
  const extension = /\.([A-Za-z0-9]+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
  return (Object.hasOwn(TEXT_TYPES, extension) ? TEXT_TYPES[extension] : undefined) ?? "text/plain; charset=utf-8";
}

/** Whether the key names a file of this session. */
export function isOwnKey(sessionKey: string, key: string): boolean {
  const prefix = mediaPrefix(sessionKey);
  return key.startsWith(prefix) && /^[0-9a-fA-F-]{1,64}\.[a-z0-9]{1,8}$/.test(key.slice(prefix.length));
}
