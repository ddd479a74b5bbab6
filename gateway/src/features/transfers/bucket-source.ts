/** The end of an attempt that reads a file of the workspace: in ranges, as fast as the destination acknowledges. */
import { toHex } from "../../../../protocol/runtime/hex.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { CHUNK_HEADER_BYTES } from "../../../../protocol/runtime/chunk.ts";
import { type Bucket, guarded, hasBody } from "../../storage/bucket.ts";
import { isMark } from "../../storage/replace.ts";
import { sha256OfStream } from "../../storage/workspace/received.ts";
import type { Frame, SourceEnd, Tell } from "./ends.ts";
import type { Facts } from "./attempt.ts";
import { release } from "./release.ts";

const READ_BYTES = 4 * LIMITS.transferChunkBytes;

export interface BucketSourcePorts {
  readonly bucket: Bucket;
  readonly key: string;
  readonly path: string;
  readonly facts: Facts;
  readonly tell: Tell;
  readonly chunk: (frame: Frame) => void;
  /** A part was read for the checksum: the attempt is alive. */
  readonly alive: () => void;
  readonly background: (what: string, work: Promise<unknown>) => void;
}

export function bucketSource({ bucket, key, path, facts, tell, chunk, alive, background }: BucketSourcePorts): SourceEnd {
  let isClosed = false;
  let isPumping = false;
  let isComplete = false;
  let found: { readonly sizeBytes: number; readonly etag: string; readonly sha256: string } | undefined;
  let sent = 0;
  let acked = 0;
  const say: Tell = (happening) => {
    if (!isClosed) tell(happening);
  };
  const failed = (reason: string, message: string): void => say({ kind: "failed", reason, message });
  const changed = (): void => failed("transfer.source_changed", `\`${path}\` changed while it was copied, so nothing was stored.`);

  async function ask(): Promise<void> {
    const head = await guarded(`read \`${path}\``, () => bucket.head(key));
    if (!head.ok) return failed(head.error.reason, head.error.message);
    if (!head.value || isMark(head.value)) return failed("path.not_found", `There is no file \`${path}\` in the workspace.`);
    const { size: sizeBytes, etag, checksums } = head.value;
    const stored = facts.version === etag ? facts.sha256 : checksums.sha256 && toHex(checksums.sha256);
    const sha256 = stored ?? (sizeBytes > LIMITS.transferBytes ? "" : await digest(etag));
    if (sha256 === undefined) return;
    found = { sizeBytes, etag, sha256 };
    say({ kind: "found", sizeBytes, version: etag, sha256 });
  }
  async function digest(etag: string): Promise<string | undefined> {
    const read = await guarded(`read \`${path}\``, async () => {
      const object = await bucket.get(key, { onlyIf: { etagMatches: etag } });
      return object && hasBody(object) ? sha256OfStream(object.body, alive) : undefined;
    });
    if (!read.ok) failed(read.error.reason, read.error.message);
    else if (read.value === undefined) changed();
    return read.ok ? read.value : undefined;
  }

  async function pump({ sizeBytes, etag, sha256 }: NonNullable<typeof found>): Promise<void> {
    if (isPumping) return;
    isPumping = true;
    try {
      while (!isClosed && sent < sizeBytes) {
        const wanted = Math.min(READ_BYTES, sizeBytes - sent);
        if (LIMITS.transferWindowBytes - (sent - acked) < wanted) return;
        const range = { offset: sent, length: wanted };
        const read = await guarded(`read \`${path}\``, async () => {
          const object = await bucket.get(key, { range, onlyIf: { etagMatches: etag } });
          return object && hasBody(object) ? new Uint8Array(await object.arrayBuffer()) : undefined;
        });
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
