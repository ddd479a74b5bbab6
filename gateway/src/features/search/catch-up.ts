/**
 * Brings an agent's search index up to date with the bucket and the agent's sessions. It pulls; nothing pushes to it. Each step is
 * small and committed with its progress, so that a pass can stop anywhere (timeout, eviction, bucket failure) and continue from
 * there. An unreadable source becomes a note. A pass never fails as a whole and must not change its sources.
 *
 * The order matters: sessions are asked before transcripts are listed. So messages that a session has archived are in the listing,
 * and they leave the session's index only after their transcript is indexed.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { MemoryChanged } from "../../ports/long-term-memory.ts";
import type { Result } from "../../ports/result.ts";
import type { IndexKind, SearchableSession, SearchableSessions, SearchRows } from "../../ports/search.ts";
import { asText, type Bucket, hasBody } from "../../storage/bucket.ts";
import { agentFolder, QUARANTINE_FOLDER } from "../../storage/keys.ts";
import { taintText } from "../../storage/versions.ts";
import type { Doc, IndexStore, Listed, MemoryChange, Source } from "./index-store.ts";
import { searchable } from "../../storage/searchable.ts";
import { dayOfName, dayWords, isMemory, linePieces, pieces } from "./text.ts";
import { transcriptLines } from "./transcript-lines.ts";

export interface CatchUpPorts {
  readonly store: IndexStore;
  readonly bucket: Pick<Bucket, "get" | "head" | "list">;
  /** The agent's sessions after this key, ordered by key. */
  readonly sessions: (afterKey: string) => Promise<SearchableSessions>;
  readonly rows: (key: string, afterSeq: number, limit: number) => Promise<Result<SearchRows>>;
  /** Changes of the agent's long-term memories after a number. Absent: the deployment has none. */
  readonly memories?: (afterSeq: number, limit: number) => Promise<Result<readonly MemoryChanged[]>>;
  readonly now: () => number;
}
/** The key of a transcript without a session key; it is about no session. */
const NOBODYS = "";
/** The part of the agent that a note is about, and the session key if it is about one session. */
export interface Note {
  readonly source: IndexKind;
  readonly sessionKey?: string;
  readonly text: string;
}
export interface Report {
  readonly complete: boolean;
  /** Every row as it was when the pass began. */
  readonly hasRows: boolean;
  readonly notes: readonly Note[];
}
/** Workspace folders that are not indexed as files: transcripts have their own source and contain the results. */
const TRANSCRIPTS = "sessions/";
const NOT_SEARCHED = new Set([TRANSCRIPTS, "results/"]);
const MEMORY_FILE = "MEMORY.md";
const MEMORY_FOLDER = "memory/";
const NOT_LISTED = "The files could not be listed now, so the last indexed state was searched.";
const MEMORIES_PER_PAGE = 200;
const FILE_PIECE_CHARS = 2_000;
const MESSAGE_PIECE_CHARS = 4_000;
/** The names in the bucket that the wire accepts; other programs may write to the bucket. */
const MAX_ID_CHARS = 64;
const MAX_KEY_CHARS = 512;
/** Objects over this limit are not searched, and a note says so. */
const MAX_FILES = 5_000;
const MAX_TRANSCRIPTS = 20_000;
const MAX_SESSIONS = 10_000;
export const ROWS_PER_PAGE = 200;
const SESSIONS_AT_ONCE = 8;
/** Limit of texts per pass: on the edge the clock does not advance without I/O, so a time limit is not enough. */
const MAX_TEXTS = 50_000;
/** `sessions/{sessionId}.jsonl.gz` or `sessions/{sessionId}-part{time}.jsonl.gz`. */
const TRANSCRIPT = /^sessions\/([^/]+?)(?:-part\d+)?\.jsonl\.gz$/;

/** What a pass brings up to date: everything; what an agent remembers (memory files, transcripts, rows); or its rows. */
export const SCOPES = ["rows", "memory", "all"] as const;
export type Scope = (typeof SCOPES)[number];

/** Runs one pass. Between steps it asks `enough` whether to stop. `hasRows`: the index has the rows as they are. */
export async function catchUp(
  agentId: string,
  ports: CatchUpPorts,
  enough: () => boolean,
  scope: Scope = "all",
  hasRows = false,
): Promise<Report> {
  return new Pass(agentId, ports, enough).run(scope, hasRows);
}

/** Only what changed in long-term memory, whole. False: it could not be read. */
export async function followMemories(agentId: string, ports: CatchUpPorts): Promise<boolean> {
  return new Pass(agentId, ports, () => false).memories();
}

class Pass {
  readonly #folder: string;
  readonly #ports: CatchUpPorts;
  readonly #enough: () => boolean;
  readonly #notes: Note[] = [];
  #failed = false;
  #taken = 0;
  #unread = 0;
  #unasked = 0;

  constructor(agentId: string, ports: CatchUpPorts, enough: () => boolean) {
    this.#folder = agentFolder(agentId);
    this.#ports = ports;
    this.#enough = () => this.#taken >= MAX_TEXTS || enough();
  }

  async run(scope: Scope, hasRows: boolean): Promise<Report> {
    const { store } = this.#ports;
    const hasNow = hasRows || (await this.memories());
    if (scope === "rows") return { complete: this.#failed || hasNow, hasRows: hasNow, notes: this.#notes };
    await (scope === "memory" ? this.#listMemoryFiles() : this.#listFiles());
    await this.#forEach("workspace", (source) => this.#file(source));
    // Without them nothing of a conversation is removed.
    const sessionsSeen = scope === "all" && (await this.#sessions());
    const transcriptsSeen = await this.#listTranscripts();
    await this.#forEach("archives", (source) => this.#transcript(source));
    const clean = this.#forget(sessionsSeen && transcriptsSeen);
    const [files, transcripts] = [store.open("workspace"), store.open("archives")];
    this.#leftOver("workspace", files, "file");
    this.#leftOver("sessions", this.#unread, "message");
    this.#leftOver("sessions", this.#unasked, "conversation");
    this.#leftOver("archives", transcripts, "transcript");
    for (const { note, sessionKey } of store.noted("archives")) this.#note("archives", note, sessionKey ?? NOBODYS);
    // The next search retries a failed source, not the alarm.
    return {
      complete: this.#failed || (clean && hasNow && files + transcripts + this.#unread + this.#unasked === 0),
      hasRows: hasNow,
      notes: this.#notes,
    };
  }
  #note(source: IndexKind, text: string, sessionKey?: string): void {
    this.#notes.push({ source, text, ...(sessionKey === undefined ? {} : { sessionKey }) });
  }
  #leftOver(source: IndexKind, count: number, what: string): void {
    if (count === 0) return;
    const are = count === 1 ? `${what} is` : `${what}s are`;
    this.#note(source, `${count.toLocaleString("en-US")} ${are} not indexed yet; search again.`);
  }
  /** An external failure: noted once per kind. */
  #fail(source: IndexKind, text: string): void {
    this.#failed = true;
    if (!this.#notes.some((note) => note.text === text)) this.#note(source, text);
  }
  async #forEach(kind: "workspace" | "archives", work: (source: Source) => Promise<void>): Promise<void> {
    for (const source of this.#ports.store.unread(kind)) {
      if (this.#enough()) return;
      await work(source);
    }
  }

  // ---------------------------------------------------------------- memories

  /** True when every change of a memory is in the index. A superseded memory is not found any more. */
  async memories(): Promise<boolean> {
    const { store, memories } = this.#ports;
    if (memories === undefined) return true;
    for (;;) {
      const from = store.memoriesSeen();
      const page = await memories(from, MEMORIES_PER_PAGE);
      if (!page.ok) {
        this.#fail("memory", "The long-term memories could not be read now, so the last indexed state was searched. Search again.");
        return false;
      }
      const last = page.value.at(-1);
      if (last === undefined) return true;
      const changes = page.value.map(({ id, memory, vector }): MemoryChange => {
        if (memory === undefined || memory.supersededBy !== undefined) return { id, docs: undefined };
        const { content, createdAt } = memory;
        const docs = pieces(content, MESSAGE_PIECE_CHARS).map(
          ({ text }, position): Doc => ({ position, at: createdAt, text, day: dayWords(createdAt) }),
        );
        return { id, docs, ...(vector === undefined ? {} : { vector }) };
      });
      this.#taken += changes.length;
      if (!store.memories(changes, { from, to: last.seq })) continue;
      if (page.value.length < MEMORIES_PER_PAGE) return true;
      if (this.#enough()) {
        this.#note("memory", "Some long-term memories are not indexed yet; search again.");
        return false;
      }
    }
  }

  // ---------------------------------------------------------------- listing

  /** Names under the agent's folder, with etags. Undefined when the bucket failed. */
  async #list(prefix: string, into: Map<string, Listed>, most: number, folders?: Set<string>): Promise<boolean> {
    let cursor: string | undefined;
    do {
      const page = await this.#ports.bucket.list({
        prefix: this.#folder + prefix,
        include: ["customMetadata"],
        ...(folders === undefined ? {} : { delimiter: "/" }),
        ...(cursor === undefined ? {} : { cursor }),
      });
      for (const object of page.objects) {
        if (into.size >= most) return false;
        const { key } = object;
        // What waits for the owner's review is found by no one (rule TA13).
        if (!key.endsWith("/") && !key.startsWith(this.#folder + QUARANTINE_FOLDER))
          into.set(key.slice(this.#folder.length), listed(object));
      }
      for (const folder of page.delimitedPrefixes) folders?.add(folder.slice(this.#folder.length));
      cursor = page.truncated ? page.cursor : undefined;
    } while (cursor !== undefined);
    return true;
  }
  async #listMemoryFiles(): Promise<void> {
    const found = new Map<string, Listed>();
    try {
      const [file, isWhole] = await Promise.all([
        this.#ports.bucket.head(this.#folder + MEMORY_FILE),
        this.#list(MEMORY_FOLDER, found, MAX_FILES),
      ]);
      if (file !== null) found.set(MEMORY_FILE, listed(file));
      if (!isWhole) this.#note("workspace", `The agent has more than ${MAX_FILES} memory files; the others are not searched.`);
    } catch {
      return this.#fail("workspace", NOT_LISTED);
    }
    this.#ports.store.listed("workspace", found, isMemory);
  }
  async #listFiles(): Promise<void> {
    const found = new Map<string, Listed>();
    const folders = new Set<string>();
    try {
      let whole = await this.#list("", found, MAX_FILES, folders);
      const searched = [...folders].filter((folder) => !NOT_SEARCHED.has(folder));
      for (const each of await Promise.all(searched.map((folder) => this.#list(folder, found, MAX_FILES)))) whole = each && whole;
      if (!whole) this.#note("workspace", `The workspace has more than ${MAX_FILES} files; the others are not searched.`);
    } catch {
      return this.#fail("workspace", NOT_LISTED);
    }
    this.#ports.store.listed("workspace", found);
  }
  async #listTranscripts(): Promise<boolean> {
    const found = new Map<string, Listed>();
    try {
      if (!(await this.#list(TRANSCRIPTS, found, MAX_TRANSCRIPTS)))
        this.#note("archives", `There are more than ${MAX_TRANSCRIPTS} transcripts; the others are not searched.`);
    } catch {
      this.#fail("archives", "The transcripts could not be listed now, so the last indexed state was searched.");
      return false;
    }
    for (const name of found.keys()) if (!TRANSCRIPT.test(name)) found.delete(name);
    this.#ports.store.listed("archives", found);
    return true;
  }

  // ---------------------------------------------------------------- files

  async #file(source: Source): Promise<void> {
    const { store, bucket } = this.#ports;
    try {
      const object = await bucket.get(this.#folder + source.name);
      if (!object || !hasBody(object)) return store.replace(source.id, [], { state: "gone" });
      if (object.size > LIMITS.workspaceFileBytes) {
        await object.body.cancel();
        return store.replace(source.id, [], { state: "skipped", etag: object.etag });
      }
      const text = asText(await object.arrayBuffer());
      if (text === undefined) return store.replace(source.id, [], { state: "skipped", etag: object.etag });
      const at = object.uploaded.getTime();
      const split = isMemory(source.name) ? linePieces : pieces;
      const day = dayOfName(source.name);
      const docs = split(text, FILE_PIECE_CHARS).map((piece): Doc => ({ position: piece.line, at, text: piece.text, day }));
      this.#taken += docs.length;
      // Of what was read, which may have been written after the listing.
      store.replace(source.id, docs, { state: "done", etag: object.etag, taint: taintText(object) });
    } catch {
      this.#fail("workspace", "Some files could not be read now, so the last indexed state was searched. Search again.");
    }
  }

  // ---------------------------------------------------------------- conversations

  /** True when each session has reported its first number. */
  async #sessions(): Promise<boolean> {
    const waiting: SearchableSession[] = [];
    try {
      for (let after: string | undefined = ""; after !== undefined && waiting.length < MAX_SESSIONS; ) {
        const { sessions, more }: SearchableSessions = await this.#ports.sessions(after);
        waiting.push(...sessions);
        after = more ? sessions.at(-1)?.key : undefined;
      }
    } catch {
      this.#fail("sessions", "The conversations could not be listed now, so the last indexed state was searched.");
      return false;
    }
    // Most recently active first: they have more to index.
    waiting.sort((left, right) => right.lastActiveAt - left.lastActiveAt);
    let asked = true;
    const work = async (): Promise<void> => {
      for (let session = waiting.shift(); session !== undefined; session = waiting.shift()) {
        if (this.#enough()) {
          this.#unasked += 1 + waiting.splice(0).length;
          asked = false;
          return;
        }
        try {
          asked = (await this.#session(session)) && asked;
        } catch {
          asked = false;
          this.#fail("sessions", "Some conversations did not answer now, so the last indexed state was searched. Search again.");
        }
      }
    };
    await Promise.all(Array.from({ length: SESSIONS_AT_ONCE }, work));
    return asked;
  }
  /** True when the whole session is indexed. */
  async #session({ key, quietSince }: SearchableSession): Promise<boolean> {
    const { store, rows, now } = this.#ports;
    let source = store.source("sessions", key);
    const startedAt = now();
    // The last check is in the future: the clock was set back, so the times can't be compared.
    if (source?.state === "done" && quietSince <= source.checkedAt && source.checkedAt <= startedAt) return true;
    for (;;) {
      const answer = await rows(key, source?.next ?? 0, ROWS_PER_PAGE);
      // The key was assigned and never used.
      if (!answer.ok) return answer.error.reason === "session.not_found";
      const page = answer.value;
      source ??= store.addSession(key);
      const { id } = source;
      if (source.next >= page.nextSeq && source.next > 0) {
        // Its numbers are lower than the indexed ones: it is a new session under this key.
        while (!store.removeBelow(id, Number.MAX_SAFE_INTEGER)) if (this.#enough()) break;
        store.add(id, [], { state: "new", next: 0 });
        source = { ...source, next: 0 };
        if (this.#enough()) return false;
        continue;
      }
      const docs = page.rows.flatMap(({ seq, ...row }) =>
        pieces(row.text, MESSAGE_PIECE_CHARS).map(
          (piece): Doc => ({ position: seq, role: row.role, at: row.at, text: piece.text, day: dayWords(row.at) }),
        ),
      );
      this.#taken += docs.length;
      store.add(id, docs, {
        state: page.more ? "partial" : "done",
        next: page.upTo,
        contextFrom: page.contextFrom,
        sessionId: page.sessionId,
        // A running run writes rows without a new message.
        checkedAt: page.busy || page.more ? 0 : startedAt,
      });
      if (!page.more) return true;
      source = { ...source, next: page.upTo };
      if (this.#enough()) {
        this.#unread += Math.max(1, page.nextSeq - 1 - page.upTo);
        return false;
      }
    }
  }

  // ---------------------------------------------------------------- transcripts

  async #transcript(source: Source): Promise<void> {
    const { store, bucket } = this.#ports;
    const sessionId = TRANSCRIPT.exec(source.name)?.[1] ?? "";
    if (source.state === "new") while (!store.removeBelow(source.id, Number.MAX_SAFE_INTEGER)) if (this.#enough()) return;
    const unreadable = (): void =>
      this.#fail("archives", "Some transcripts could not be read now, so they were not searched. Search again.");
    let object: Awaited<ReturnType<typeof bucket.get>>;
    try {
      object = await bucket.get(this.#folder + source.name);
    } catch {
      return unreadable();
    }
    if (!object || !hasBody(object)) return store.add(source.id, [], { state: "gone" });
    const meta = object.customMetadata ?? {};
    const about = {
      sessionId: (meta["sessionId"] ?? sessionId).slice(0, MAX_ID_CHARS),
      ...(meta["sessionKey"] === undefined ? {} : { sessionKey: meta["sessionKey"].slice(0, MAX_KEY_CHARS) }),
    };
    const from = source.state === "new" ? 0 : source.next;
    let position = 0;
    let broken = 0;
    const note = (what: string): string => `The transcript \`${source.name}\` ${what}`.slice(0, 512);
    const lines = transcriptLines(object.body);
    try {
      for await (const batch of lines) {
        if (batch.kind === "failed") return unreadable();
        if (batch.kind === "damaged")
          return store.add(source.id, [], {
            ...about,
            state: "damaged",
            note: note(`is damaged; its first ${position} messages are searched.`),
          });
        const docs: Doc[] = [];
        for (const line of batch.lines) {
          const message = parse(line);
          if (message === undefined) broken++;
          else if (position >= from)
            for (const piece of pieces(message.text, MESSAGE_PIECE_CHARS))
              docs.push({ position, role: message.role, at: message.at, text: piece.text, day: dayWords(message.at) });
          position++;
        }
        if (position <= from) continue;
        this.#taken += docs.length;
        store.add(source.id, docs, { ...about, state: "partial", next: position });
        if (this.#enough()) return;
      }
    } finally {
      await lines.return();
    }
    store.add(source.id, [], {
      ...about,
      next: position,
      ...(broken === 0 ? { state: "done" } : { state: "damaged", note: note(`has ${broken} damaged lines, which are not searched.`) }),
    });
  }

  // ---------------------------------------------------------------- removed sources

  /** True when there is nothing left to remove. */
  #forget(sure: boolean): boolean {
    const { store } = this.#ports;
    while (!store.removeGone()) if (this.#enough()) return false;
    if (!sure) return true;
    for (const { id, name, contextFrom } of store.sources("sessions")) {
      if (store.archiveOpenFor(name)) continue;
      while (!store.removeBelow(id, contextFrom)) if (this.#enough()) return false;
    }
    return true;
  }
}
function listed(object: R2Object): Listed {
  const taint = taintText(object);
  return { etag: object.etag, ...(taint === undefined ? {} : { taint }) };
}
function parse(line: string): ReturnType<typeof searchable> {
  try {
    return searchable(JSON.parse(line));
  } catch {
    return undefined;
  }
}
