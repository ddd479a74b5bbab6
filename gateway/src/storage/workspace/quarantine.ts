/**
 * Memories that wait for the owner's review (rules TA12-TA15): one object for each, in memory/quarantine/ of the agent's workspace. An entry
 * never changes, so what the owner has seen is what they keep. Nothing here is ever removed but by `drop`: a full quarantine takes no more.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { hashPair } from "../../../../protocol/runtime/hash.ts";
import { isJsonObject } from "../../../../protocol/runtime/json-object.ts";
import type { MemoryChange } from "../../ports/agent-files.ts";
import { failure, type Result } from "../../ports/result.ts";
import { TAINT_LABELS, type Taint } from "../../ports/taint.ts";
import { type Bucket, guarded, hasBody } from "../bucket.ts";
import { fileKey, folderPrefix, parsePath, QUARANTINE_FOLDER, quarantinePath, type WorkspacePath } from "../keys.ts";
import { isMemory, protectionOf } from "./protection.ts";

export interface QuarantinedMemory {
  /** The file that the memory was meant for. */
  readonly path: WorkspacePath;
  readonly change: MemoryChange;
  /** What the conversation had read. */
  readonly taint: Taint;
  readonly sessionKey: string;
  /** The call or effect that wrote it. */
  readonly callId: string;
  /** Epoch ms. */
  readonly at: number;
}
export interface QuarantineEntry extends QuarantinedMemory {
  readonly id: string;
}
export interface Quarantine {
  /** Once for a call id. `memory.quarantine_full`: nothing was kept. */
  add(agentId: string, memory: QuarantinedMemory): Promise<Result<{ readonly id: string }>>;
  /** Oldest first. `damaged`: the ids of entries that can't be read, which can only be dropped. */
  list(agentId: string): Promise<Result<{ readonly entries: readonly QuarantineEntry[]; readonly damaged: readonly string[] }>>;
  /** Undefined: there is none. */
  find(agentId: string, id: string): Promise<Result<QuarantineEntry | undefined>>;
  /** False: there was none. */
  drop(agentId: string, id: string): Promise<Result<boolean>>;
}
/** Without letters and digits that look alike. */
const ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ";
const ID_CHARS = 8;
const ID = new RegExp(`^[${ALPHABET}]{${ID_CHARS}}$`);
/** As people write it. Undefined: no id. */
export function readId(given: string): string | undefined {
  const id = given.trim().toUpperCase();
  return ID.test(id) ? id : undefined;
}
/** Follows from the call, so that a repeated call finds its own entry. */
function idOf({ sessionKey, callId }: QuarantinedMemory): string {
  const [first, second] = hashPair(`${sessionKey}\n${callId}`);
  let rest = BigInt(first) * 0x100000000n + BigInt(second);
  let id = "";
  while (id.length < ID_CHARS) {
    id += ALPHABET[Number(rest % BigInt(ALPHABET.length))] ?? "";
    rest /= BigInt(ALPHABET.length);
  }
  return id;
}
const VERSION = 1;

export function createQuarantine(bucket: Bucket): Quarantine {
  const keyOf = (agentId: string, id: string): string => fileKey(agentId, quarantinePath(id));
  async function listed(agentId: string): Promise<Result<readonly R2Object[]>> {
    return guarded("list the quarantine", async () => {
      const { objects } = await bucket.list({ prefix: folderPrefix(agentId, "") + QUARANTINE_FOLDER, limit: 1_000 });
      return objects.filter(({ key }) => ID.test(nameOf(key)));
    });
  }
  async function read(agentId: string, id: string): Promise<Result<QuarantineEntry | "none" | "damaged">> {
    const got = await guarded("read the quarantine", async () => {
      const object = await bucket.get(keyOf(agentId, id));
      if (object === null || !hasBody(object)) return undefined;
      if (object.size <= MAX_ENTRY_BYTES) return object.text();
      await object.body.cancel();
      return "";
    });
    if (!got.ok) return got;
    if (got.value === undefined) return { ok: true, value: "none" };
    const memory = parsed(got.value);
    return { ok: true, value: memory === undefined ? "damaged" : { id, ...memory } };
  }
  return {
    async add(agentId, memory) {
      const id = idOf(memory);
      const text = JSON.stringify({ version: VERSION, ...memory });
      const bytes = new TextEncoder().encode(text);
      const present = await listed(agentId);
      if (!present.ok) return present;
      if (present.value.some(({ key }) => nameOf(key) === id)) return { ok: true, value: { id } };
      const size = present.value.reduce((sum, object) => sum + object.size, 0);
      if (present.value.length >= LIMITS.quarantineEntries || size + bytes.length > LIMITS.quarantineBytes)
        return failure(
          "memory.quarantine_full",
          `The quarantine of memory is full (${present.value.length} entries, ${size} bytes), so nothing was kept.`,
        );
      const put = await guarded("write the quarantine", () =>
        bucket.put(keyOf(agentId, id), bytes, { onlyIf: { etagDoesNotMatch: "*" }, httpMetadata: { contentType: "application/json" } }),
      );
      return put.ok ? { ok: true, value: { id } } : put;
    },
    async list(agentId) {
      const present = await listed(agentId);
      if (!present.ok) return present;
      const entries: QuarantineEntry[] = [];
      const damaged: string[] = [];
      for (const { key } of present.value) {
        const id = nameOf(key);
        const entry = await read(agentId, id);
        if (!entry.ok) return entry;
        if (entry.value === "damaged") damaged.push(id);
        else if (entry.value !== "none") entries.push(entry.value);
      }
      return { ok: true, value: { entries: entries.sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1)), damaged } };
    },
    async find(agentId, id) {
      const entry = await read(agentId, id);
      if (!entry.ok) return entry;
      return { ok: true, value: typeof entry.value === "string" ? undefined : entry.value };
    },
    async drop(agentId, id) {
      const key = keyOf(agentId, id);
      const head = await guarded("read the quarantine", () => bucket.head(key));
      if (!head.ok) return head;
      if (head.value === null) return { ok: true, value: false };
      const gone = await guarded("empty the quarantine", () => bucket.delete(key));
      return gone.ok ? { ok: true, value: true } : gone;
    },
  };
}
const MAX_ENTRY_BYTES = LIMITS.quarantineBytes;
const nameOf = (key: string): string => key.slice(key.lastIndexOf("/") + 1).replace(/\.json$/, "");

/** Undefined: not an entry. The file may have been changed on the disk. */
function parsed(text: string): QuarantinedMemory | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isJsonObject(value) || value["version"] !== VERSION) return undefined;
  const { path: given, sessionKey, callId, at, taint: heard, change: asked } = value;
  const path = typeof given === "string" ? parsePath(given) : undefined;
  const change = changeOf(asked);
  const taint = taintFrom(heard);
  if (!path?.ok || !isMemory(path.value) || protectionOf(path.value) === "quarantine") return undefined;
  if (change === undefined || taint === undefined) return undefined;
  if (typeof sessionKey !== "string" || typeof callId !== "string" || typeof at !== "number" || !Number.isSafeInteger(at)) return undefined;
  return { path: path.value, change, taint, sessionKey, callId, at };
}
function taintFrom(value: unknown): Taint | undefined {
  if (!isJsonObject(value) || typeof value["source"] !== "string") return undefined;
  const label = TAINT_LABELS.find((name) => name === value["label"]);
  return label === undefined ? undefined : { label, source: value["source"] };
}
function changeOf(value: unknown): MemoryChange | undefined {
  if (!isJsonObject(value)) return undefined;
  const { kind, text, content, oldString, newString, replaceAll } = value;
  if (kind === "append" && typeof text === "string") return { kind, text };
  if (kind === "write" && typeof content === "string") return { kind, content };
  if (kind === "edit" && typeof oldString === "string" && typeof newString === "string" && typeof replaceAll === "boolean")
    return { kind, oldString, newString, replaceAll };
  return undefined;
}
