/**
 * Lists transcripts and reads their messages in pages. Streams them, so that a long transcript needs no more memory than a
 * page, and reports damage with the readable part. Must not write, and must not trust the content.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { failure, type Result } from "../ports/result.ts";
import { type Bucket, guarded, hasBody } from "./bucket.ts";
import { gunzipLines, type LinesEnd } from "./gunzip-lines.ts";
import {
  type ArchiveName,
  agentFolder,
  archiveKey,
  archivesPrefix,
  fileKey,
  parseArchivePath,
  parsePath,
  SESSIONS_FOLDER,
} from "./keys.ts";
import { fitting } from "./shorten.ts";
import { ANSWER_BYTES } from "./text-page.ts";

export interface ArchiveInfo {
  /** In the agent's workspace. */
  readonly path: string;
  readonly kind: "reset" | "part";
  readonly sessionKey?: string;
  readonly sessionId: string;
  readonly messageCount?: number;
  /** Epoch ms. */
  readonly archivedAt: number;
  readonly sizeBytes: number;
  readonly tokens?: { readonly input: number; readonly output: number; readonly total: number };
}
export interface ArchivePage {
  readonly archive: ArchiveInfo;
  readonly messages: unknown[];
  readonly offset: number;
  /** Absent on the last page. */
  readonly nextOffset?: number;
  readonly total: number;
}
/** The readable part of a damaged transcript: `details` of the error. */
export interface Damage {
  /** Number of readable messages from the beginning. */
  readonly readable: number;
  /** The first message after the damage, when reading can continue there. */
  readonly resumeAt?: number;
  readonly total?: number;
}
export interface PageAsked {
  readonly offset?: number;
  readonly limit?: number;
}
export interface ArchiveReader {
  /** All transcripts of an agent, newest first. */
  list(agentId: string): Promise<Result<readonly ArchiveInfo[]>>;
  /**
   * `given`: a path from `list`, or a session id. Without offset and limit it checks the whole transcript
   * (checksum, count); with an offset or a limit it reads only the requested part.
   */
  page(agentId: string, given: string, asked: PageAsked): Promise<Result<ArchivePage>>;
}

const MAX_LIST_PAGES = 200;

const numberAt = (object: R2Object, name: string): number | undefined => {
  const text = object.customMetadata?.[name] ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
};
function infoOf(name: ArchiveName, object: R2Object): ArchiveInfo {
  const messageCount = numberAt(object, "messageCount");
  const sessionKey = object.customMetadata?.["sessionKey"];
  const [input, output, total] = ["inputTokens", "outputTokens", "totalTokens"].map((key) => numberAt(object, key));
  const tokens = input !== undefined && output !== undefined && total !== undefined ? { input, output, total } : undefined;
  return {
    path: name.path,
    // A reset whose name was taken is stored under a part's name, but keeps a reset's token counts.
    kind: name.part === undefined || tokens ? "reset" : "part",
    ...(sessionKey === undefined || sessionKey === "" ? {} : { sessionKey }),
    sessionId: name.sessionId,
    ...(messageCount === undefined ? {} : { messageCount }),
    archivedAt: numberAt(object, "archivedAt") ?? name.part ?? object.uploaded.getTime(),
    sizeBytes: object.size,
    ...(tokens ? { tokens } : {}),
  };
}

/** A line of the transcript; undefined when it is not a message. */
function parsed(line: string): object | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && "role" in value && typeof value.role === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

function damaged(path: string, what: string, damage: Damage) {
  const of = damage.total === undefined ? "" : ` of ${damage.total}`;
  const rest =
    damage.readable === 0
      ? "None of its messages can be read from the beginning."
      : `Its first ${damage.readable}${of} messages can be read: set a limit, such as \`limit: ${damage.readable}\`.`;
  const after = damage.resumeAt === undefined ? "" : ` To read the messages after the damage, set \`offset: ${damage.resumeAt}\`.`;
  const { error } = failure("archive.damaged", `The transcript \`${path}\` is damaged: ${what}. ${rest}${after}`);
  return { ok: false, error: { ...error, details: damage } } as const;
}
const ENDS: Readonly<Record<Exclude<LinesEnd["end"], "whole" | "stopped">, string>> = {
  broken: "its end is missing or its bytes were changed",
  "line too long": "one of its lines is too long",
  "too large": "its unpacked size is over the limit",
};

export function createArchiveReader(bucket: Bucket): ArchiveReader {
  async function open(agentId: string, given: string): Promise<Result<{ name: ArchiveName; object: R2ObjectBody }>> {
    const folder = agentFolder(agentId);
    const text = given.startsWith(folder) ? given.slice(folder.length) : given;
    const path = parsePath(text.includes("/") || text.endsWith(".gz") ? text : `${SESSIONS_FOLDER}${text}.jsonl.gz`);
    if (!path.ok) return path;
    const name = parseArchivePath(path.value);
    if (!name)
      return failure("path.invalid", `\`${path.value}\` is not a transcript. Transcripts are named \`sessions/{sessionId}.jsonl.gz\`.`);
    const got = await guarded("read the transcript", () => bucket.get(fileKey(agentId, path.value)));
    if (!got.ok) return got;
    if (got.value && hasBody(got.value)) return { ok: true, value: { name, object: got.value } };
    if (text !== path.value && archiveKey(agentId, text) === fileKey(agentId, path.value)) {
      const prefix = `${archivesPrefix(agentId)}${text}-part`;
      const parts = await guarded("be searched", () => bucket.list({ prefix, limit: 1 }));
      if (parts.ok && parts.value.objects.length > 0)
        return failure(
          "path.not_found",
          `The session \`${text}\` has only transcripts of parts so far.`,
          "List them and name one: `gsv session history`.",
        );
    }
    return failure("path.not_found", `There is no transcript \`${path.value}\`.`, "List the transcripts: `gsv session history`.");
  }

  return {
    async list(agentId) {
      return guarded("list the transcripts", async () => {
        const found: ArchiveInfo[] = [];
        const cut = agentFolder(agentId).length;
        let cursor: string | undefined;
        for (let page = 0; page < MAX_LIST_PAGES; page++) {
          const listed: R2Objects = await bucket.list({
            prefix: archivesPrefix(agentId),
            include: ["customMetadata"],
            ...(cursor === undefined ? {} : { cursor }),
          });
          for (const object of listed.objects) {
            const name = parseArchivePath(object.key.slice(cut));
            if (name) found.push(infoOf(name, object));
          }
          cursor = listed.truncated ? listed.cursor : undefined;
          if (cursor === undefined) break;
        }
        return found.sort((a, b) => b.archivedAt - a.archivedAt || (a.path < b.path ? 1 : -1));
      });
    },

    async page(agentId, given, { offset = 0, limit }) {
      const opened = await open(agentId, given);
      if (!opened.ok) return opened;
      const { name, object } = opened.value;
      const archive = infoOf(name, object);
      const promised = archive.messageCount;
      const check = offset === 0 && limit === undefined;
      const toTheEnd = check || promised === undefined;
      const messages: unknown[] = [];
      let bytes = 0;
      let full = false;
      let bad: number | undefined;
      const read = await gunzipLines(object.body, { sha256: check }, (line, index) => {
        if (index < offset) return "go on";
        if (full) return toTheEnd ? "go on" : "stop";
        const message = parsed(line);
        if (!message) {
          bad = index;
          return "stop";
        }
        const shown = fitting(message, ANSWER_BYTES);
        if (bytes + shown.bytes > LIMITS.pageBytes && messages.length > 0) {
          full = true;
          return toTheEnd ? "go on" : "stop";
        }
        bytes += shown.bytes;
        messages.push(shown.message);
        full = messages.length === limit;
        return full && !toTheEnd ? "stop" : "go on";
      });
      const total = promised === undefined ? {} : { total: promised };
      if (bad !== undefined)
        return damaged(name.path, `its line ${bad + 1} is not a message`, { readable: bad, resumeAt: bad + 1, ...total });
      const reached = offset + messages.length;
      if (read.end !== "whole" && read.end !== "stopped") {
        // The requested part comes before the damage.
        if (!full || check) return damaged(name.path, ENDS[read.end], { readable: read.lines, ...total });
      } else if (read.end === "whole") {
        const wanted = object.customMetadata?.["sha256"];
        if (promised !== undefined && read.lines !== promised && (check || !full))
          return damaged(name.path, `it has ${read.lines} messages instead of ${promised}`, { readable: read.lines, ...total });
        if (check && wanted !== undefined && read.sha256 !== wanted)
          return damaged(name.path, "its checksum differs from the stored one", { readable: read.lines, ...total });
      }
      const all = promised ?? read.lines;
      return { ok: true, value: { archive, messages, offset, ...(reached < all ? { nextOffset: reached } : {}), total: all } };
    },
  };
}
