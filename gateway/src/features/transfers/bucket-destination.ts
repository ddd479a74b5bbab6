/**
 * The end of an attempt that writes a file of the workspace. Each part is an object of its own, and is acknowledged when it is stored: so a
 * restart loses nothing that was acknowledged, and at most a window is in memory. The parts become the file at the end (storage/workspace/received.ts).
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { type Bucket, guarded } from "../../storage/bucket.ts";
import { transferPartKey } from "../../storage/keys.ts";
import { type Received, storeReceived } from "../../storage/workspace/received.ts";
import { type DestinationEnd, NUMBER_BYTES, type Tell } from "./ends.ts";

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

export function bucketDestination({ bucket, file, storedBytes, tell, alive, background }: BucketDestinationPorts): DestinationEnd {
  let isClosed = false;
  let size = 0;
  let received = storedBytes;
  let part = new Uint8Array(0);
  /** Of stored parts: a large copy does not leave a buffer for each of them. */
  const free: Uint8Array<ArrayBuffer>[] = [];
  let filled = 0;
  let writes: Promise<void> = Promise.resolve();
  const say: Tell = (happening) => {
    if (!isClosed) tell(happening);
  };
  const next = (work: () => Promise<void>): void => {
    writes = writes.then(() => (isClosed ? undefined : work()));
    background("transfer_write", writes);
  };
  function store(number: number, bytes: Uint8Array<ArrayBuffer>, end: number): void {
    next(async () => {
      const put = await guarded("store a part of the copy", () => bucket.put(transferPartKey(file.id, number), bytes));
      if (put.ok && bytes.length === LIMITS.transferPartBytes) free.push(bytes);
      say(put.ok ? { kind: "acked", offset: end } : { kind: "failed", ...put.error });
    });
  }
  return {
    offer(sizeBytes) {
      size = sizeBytes;
      say({ kind: "accepted", offset: Math.min(received, sizeBytes) });
    },
    chunk(frame) {
      let rest = frame.subarray(NUMBER_BYTES);
      while (rest.length > 0) {
        if (filled === 0) {
          const length = Math.min(LIMITS.transferPartBytes, size - received);
          part = (length === LIMITS.transferPartBytes ? free.pop() : undefined) ?? new Uint8Array(length);
        }
        const taken = rest.subarray(0, part.length - filled);
        part.set(taken, filled);
        filled += taken.length;
        rest = rest.subarray(taken.length);
        if (filled < part.length) continue;
        const number = Math.floor(received / LIMITS.transferPartBytes);
        received += filled;
        filled = 0;
        store(number, part, received);
      }
    },
    finish(sha256) {
      next(async () => {
        const stored = await storeReceived(bucket, { ...file, sizeBytes: size, sha256 }, alive);
        say(stored.ok ? { kind: "stored", sha256 } : { kind: "failed", ...stored.error });
      });
    },
    close() {
      isClosed = true;
      return true;
    },
  };
}
