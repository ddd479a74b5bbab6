/**
 * The end of an attempt that writes a file of the workspace. Each part is an object of its own, from which an attempt after a restart goes on.
 * Two parts are in memory at most: one fills while the other is stored, and what does not fit is not acknowledged. So a slow bucket slows
 * the source down. The parts become the file at the end (storage/workspace/received.ts).
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { type Bucket, guarded } from "../../storage/bucket.ts";
import { transferPartKey } from "../../storage/keys.ts";
import { type Received, storeReceived } from "../../storage/workspace/received.ts";
import { type DestinationEnd, type Frame, NUMBER_BYTES, type Tell } from "./ends.ts";
import { release } from "./release.ts";

export interface BucketDestinationPorts {
  readonly bucket: Bucket;
  readonly file: Omit<Received, "sizeBytes" | "sha256">;
  /** What earlier attempts have stored: whole parts. */
  readonly storedBytes: number;
  readonly tell: Tell;
  /** A part was copied: the attempt is alive. */
  readonly alive: () => void;
  readonly background: (what: string, work: Promise<unknown>) => void;
}

const PART_BYTES = LIMITS.transferStoredBytes;

export function bucketDestination({ bucket, file, storedBytes, tell, alive, background }: BucketDestinationPorts): DestinationEnd {
  let isClosed = false;
  let size = 0;
  /** In parts, acknowledged, stored. */
  let [taken, acked, kept] = [storedBytes, storedBytes, storedBytes];
  /** Chunks for which no part is free, and how much of the first one was taken. */
  const waiting: Frame[] = [];
  let used = NUMBER_BYTES;
  let part: Uint8Array<ArrayBuffer> | undefined;
  let filled = 0;
  /** Full parts: the first one is being stored. */
  const full: Uint8Array<ArrayBuffer>[] = [];
  /** A large copy does not leave a buffer for each part. */
  let spare: Uint8Array<ArrayBuffer> | undefined;
  let isStoring = false;
  let storing: Promise<void> = Promise.resolve();
  const say: Tell = (happening) => {
    if (!isClosed) tell(happening);
  };

  /** Takes what waits, as long as there is a part for it. */
  function take(): void {
    for (let frame = waiting[0]; frame !== undefined; frame = waiting[0]) {
      if (part === undefined) {
        if (full.length > 1) break;
        const length = Math.min(PART_BYTES, size - taken);
        if (spare !== undefined && spare.length !== length) release(spare);
        part = spare?.length === length ? spare : new Uint8Array(length);
        spare = undefined;
        filled = 0;
      }
      const bytes = frame.subarray(used, used + part.length - filled);
      part.set(bytes, filled);
      filled += bytes.length;
      used += bytes.length;
      taken += bytes.length;
      if (used === frame.length) {
        waiting.shift();
        release(frame);
        used = NUMBER_BYTES;
      }
      if (filled < part.length) continue;
      full.push(part);
      part = undefined;
      if (!isStoring) {
        isStoring = true;
        storing = store();
        background("transfer_write", storing);
      }
    }
    if (taken - acked < LIMITS.transferPartBytes && taken < size) return;
    if (taken > acked) {
      acked = taken;
      say({ kind: "acked", offset: acked, kept });
    }
  }

  async function store(): Promise<void> {
    for (let bytes = full[0]; bytes !== undefined && !isClosed; bytes = full[0]) {
      const content = bytes;
      const number = Math.floor(kept / PART_BYTES);
      const put = await guarded("store a part of the copy", () => bucket.put(transferPartKey(file.id, number), content));
      if (!put.ok) say({ kind: "failed", ...put.error });
      // The attempt is over: by this error, or meanwhile.
      if (isClosed || !put.ok) return release(content);
      full.shift();
      spare = content;
      kept += content.length;
      say({ kind: "acked", offset: acked, kept });
      if (!isClosed) take();
    }
    isStoring = false;
  }

  async function join(sha256: string): Promise<void> {
    await storing;
    if (isClosed) return;
    if (spare !== undefined) release(spare);
    spare = undefined;
    const stored = await storeReceived(bucket, { ...file, sizeBytes: size, sha256 }, alive);
    say(stored.ok ? { kind: "stored", sha256 } : { kind: "failed", ...stored.error });
  }

  return {
    offer(sizeBytes) {
      size = sizeBytes;
      taken = acked = kept = Math.min(storedBytes, sizeBytes);
      say({ kind: "accepted", offset: kept });
    },
    chunk(frame) {
      waiting.push(frame);
      take();
    },
    finish: (sha256) => background("transfer_store", join(sha256)),
    close() {
      isClosed = true;
      // The first of the full ones is released when it is stored.
      const unused = [...full.slice(isStoring ? 1 : 0), ...waiting, ...(part ? [part] : []), ...(spare ? [spare] : [])];
      for (const bytes of unused) release(bytes);
      for (const list of [full, waiting]) list.length = 0;
      part = spare = undefined;
      return true;
    },
    idle: () => storing,
  };
}
