/** The bucket as one session uses it: archives, memory files and media, with the faults that a bucket has. */
import type { Message } from "../../src/ports/messages.ts";
import type { ArchiveInput } from "../../src/ports/archives.ts";
import type { SessionParts } from "../../src/session/session-parts.ts";
import type { Rng } from "./rng.ts";

export interface BucketPorts {
  readonly rng: Rng;
  readonly faulty: () => boolean;
}

export class FakeBucket {
  readonly archives = new Map<string, readonly Message[]>();
  /** Daily files, and what each remembers of who wrote to it. */
  readonly memoryFiles = new Map<string, { text: string; readonly keys: Set<string> }>();
  /** Media in the bucket: when each object was stored. */
  readonly media = new Map<string, number>();
  readonly #ports: BucketPorts;

  constructor(ports: BucketPorts) {
    this.#ports = ports;
  }
  putArchive(input: ArchiveInput): Awaited<ReturnType<SessionParts["archives"]["put"]>> {
    const key = `agents/${input.agentId}/sessions/${input.sessionId}${input.part === undefined ? "" : `-part${input.part}`}.jsonl.gz`;
    const messages: Message[] = [...input.messages].map((message) => JSON.parse(JSON.stringify(message)));
    if (this.#ports.faulty() && this.#ports.rng.chance(0.15)) {
      if (this.#ports.rng.chance(0.5)) return { ok: false, error: { reason: "storage.failed", message: "The bucket is away." } };
      // Torn: what is there is not what was put. The store may say so, or a count that is wrong.
      if (messages.length > 1) return { ok: true, value: { key, sha256: "", count: messages.length - 1 } };
    }
    // Never overwritten with something else, as the real one.
    let name = key;
    for (let more = 1; ; more++) {
      const there = this.archives.get(name);
      if (!there || JSON.stringify(there) === JSON.stringify(messages)) break;
      name = `${key}-${more}`;
    }
    this.archives.set(name, messages);
    return { ok: true, value: { key: name, sha256: "", count: messages.length } };
  }
  appendMemory(date: string, text: string, key: string): Awaited<ReturnType<SessionParts["memory"]["append"]>> {
    if (this.#ports.faulty() && this.#ports.rng.chance(0.2))
      return { ok: false, error: { reason: "workspace.conflict", message: "The file was changed meanwhile." } };
    const path = `memory/${date}.md`;
    const file = this.memoryFiles.get(path) ?? { text: "", keys: new Set<string>() };
    this.memoryFiles.set(path, file);
    if (!file.keys.has(key)) file.text += text;
    file.keys.add(key);
    return { ok: true, value: { path } };
  }
  deleteMedia(before: number, keep: ReadonlySet<string>): Awaited<ReturnType<SessionParts["media"]["delete"]>> {
    if (this.#ports.faulty() && this.#ports.rng.chance(0.2))
      return { ok: false, error: { reason: "storage.failed", message: "The bucket is away." } };
    const gone = [...this.media].filter(([key, at]) => at < before && !keep.has(key));
    for (const [key] of gone) this.media.delete(key);
    return { ok: true, value: gone.length };
  }
}
