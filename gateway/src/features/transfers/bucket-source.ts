/** The end of an attempt that reads a file of the workspace, or a built-in one: in ranges, as fast as the destination acknowledges. */
import { toHex } from "../../../../protocol/runtime/hex.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { CHUNK_HEADER_BYTES } from "../../../../protocol/runtime/chunk.ts";
import { type Bucket, guarded, hasBody } from "../../storage/bucket.ts";
import type { WorkspacePath } from "../../storage/keys.ts";
import { readableFile } from "../../storage/workspace/readable.ts";
import { sha256OfStream } from "../../storage/workspace/received.ts";
import type { Frame, SourceEnd, Tell } from "./ends.ts";
import type { Facts } from "./attempt.ts";
import { release } from "./release.ts";

const READ_BYTES = 4 * LIMITS.transferChunkBytes;

export interface BucketSourcePorts {
  readonly bucket: Bucket;
  readonly agentId: string;
  readonly path: WorkspacePath;
  readonly facts: Facts;
  readonly tell: Tell;
  readonly chunk: (frame: Frame) => void;
  /** A part was read for the checksum: the attempt is alive. */
  readonly alive: () => void;
  readonly background: (what: string, work: Promise<unknown>) => void;
}

interface FoundFile {
  readonly sizeBytes: number;
  readonly etag: string;
  /** Where the bytes are: a key of the bucket, or the bytes of a built-in file. */
  readonly at: string | Uint8Array<ArrayBuffer>;
}

export function bucketSource({ bucket, agentId, path, facts, tell, chunk, alive, background }: BucketSourcePorts): SourceEnd {
  let isClosed = false;
  let isPumping = false;
  let isComplete = false;
  let found: (FoundFile & { readonly sha256: string }) | undefined;
  let sent = 0;
  let acked = 0;
  const say: Tell = (event) => {
    if (!isClosed) tell(event);
  };
  const failed = (reason: string, message: string): void => say({ kind: "failed", reason, message });
  const changed = (): void => failed("transfer.source_changed", `\`${path}\` changed while it was copied, so nothing was stored.`);

  async function ask(): Promise<void> {
    const file = await readableFile(bucket, agentId, path);
    if (!file.ok) return failed(file.error.reason, file.error.message);
    if (file.value === undefined) return failed("path.not_found", `There is no file \`${path}\` in the workspace.`);
    if (file.value.kind === "built_in") {
      const { bytes, sha256 } = file.value;
      found = { sizeBytes: bytes.length, etag: `builtin-${sha256}`, at: bytes, sha256 };
    } else {
      const { key, object } = file.value;
      const { size: sizeBytes, etag, checksums } = object;
      const stored = facts.version === etag ? facts.sha256 : checksums.sha256 && toHex(checksums.sha256);
      const sha256 = stored ?? (sizeBytes > LIMITS.transferBytes ? "" : await digest(key, etag));
      if (sha256 === undefined) return;
      found = { sizeBytes, etag, at: key, sha256 };
    }
    say({ kind: "found", sizeBytes: found.sizeBytes, version: found.etag, sha256: found.sha256 });
  }
  async function digest(key: string, etag: string): Promise<string | undefined> {
    const read = await guarded(`read \`${path}\``, async () => {
      const object = await bucket.get(key, { onlyIf: { etagMatches: etag } });
      return object && hasBody(object) ? sha256OfStream(object.body, alive) : undefined;
    });
    if (!read.ok) failed(read.error.reason, read.error.message);
    else if (read.value === undefined) changed();
    return read.ok ? read.value : undefined;
  }

  /** A range of the file. Undefined: the file has changed. */
  async function bytesOf({ at, etag }: FoundFile, offset: number, length: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
    if (typeof at !== "string") return at.slice(offset, offset + length);
    const object = await bucket.get(at, { range: { offset, length }, onlyIf: { etagMatches: etag } });
    return object && hasBody(object) ? new Uint8Array(await object.arrayBuffer()) : undefined;
  }

  async function pump(file: NonNullable<typeof found>): Promise<void> {
    if (isPumping) return;
    isPumping = true;
    const { sizeBytes, sha256 } = file;
    try {
      while (!isClosed && sent < sizeBytes) {
        const wanted = Math.min(READ_BYTES, sizeBytes - sent);
        if (LIMITS.transferWindowBytes - (sent - acked) < wanted) return;
        const read = await guarded(`read \`${path}\``, () => bytesOf(file, sent, wanted));
        if (!read.ok) return failed(read.error.reason, read.error.message);
        if (read.value?.length !== wanted) return changed();
        for (let at = 0; at < wanted && !isClosed; at += LIMITS.transferChunkBytes) {
          const bytes = read.value.subarray(at, at + LIMITS.transferChunkBytes);
          const frame = new Uint8Array(CHUNK_HEADER_BYTES + bytes.length);
          frame.set(bytes, CHUNK_HEADER_BYTES);
          sent += bytes.length;
          chunk(frame);
        }
        release(read.value);
      }
    } finally {
      isPumping = false;
    }
    if (sent === sizeBytes && !isComplete) {
      isComplete = true;
      say({ kind: "completed", sha256 });
    }
  }
  const goOn = (): void => {
    if (found !== undefined) background("transfer_read", pump(found));
  };
  return {
    ask: () => background("transfer_open", ask()),
    start(offset) {
      sent = acked = offset;
      goOn();
    },
    ack(offset) {
      acked = offset;
      goOn();
    },
    close() {
      isClosed = true;
    },
  };
}
