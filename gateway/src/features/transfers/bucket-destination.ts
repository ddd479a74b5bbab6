/**
 * The end of an attempt that writes a file of the workspace. Each part is an object of its own, from which an attempt after a restart goes on.
 * A part is a stream into the bucket, because a write of bytes copies them. What the bucket does not take waits and is not acknowledged,
 * so a slow bucket slows the source down. The parts become the file at the end (storage/workspace/received.ts).
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { CHUNK_HEADER_BYTES } from "../../../../protocol/runtime/chunk.ts";
import type { Result } from "../../ports/result.ts";
import { type Bucket, guarded } from "../../storage/bucket.ts";
import { transferPartKey } from "../../storage/keys.ts";
import { type Received, storeReceived } from "../../storage/workspace/received.ts";
import type { DestinationEnd, Frame, Tell } from "./ends.ts";
import { release } from "./release.ts";

export interface BucketDestinationPorts {
  readonly bucket: Bucket;
  readonly file: Omit<Received, "sizeBytes" | "sha256">;
  /** What earlier attempts have stored: whole parts. */
  readonly storedBytes: number;
  readonly tell: Tell;
  readonly addGcPressure: (bytes: number) => void;
  /** A part was copied: the attempt is alive. */
  readonly alive: () => void;
  readonly background: (what: string, work: Promise<unknown>) => void;
}

const PART_BYTES = LIMITS.transferStoredBytes;
/** What is given to the bucket at once. Each write costs some objects, whatever its size, until the next collection. */
const WRITE_BYTES = 1024 * 1024;

interface Part {
  /** Where it ends in the file. */
  readonly end: number;
  readonly writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly stored: Promise<Result<unknown>>;
}

export function bucketDestination({
  bucket,
  file,
  storedBytes,
  tell,
  addGcPressure,
  alive,
  background,
}: BucketDestinationPorts): DestinationEnd {
  let isClosed = false;
  let size = 0;
  /** Taken from the chunks, given to the bucket, acknowledged, stored. */
  let [taken, given, acked, kept] = [storedBytes, storedBytes, storedBytes, storedBytes];
  /** Chunks that are not taken, as many as the source sends without an acknowledgement. */
  const waiting: Frame[] = [];
  /** What is taken of the first of them. */
  let used = CHUNK_HEADER_BYTES;
  /** One buffer for all pieces: another one for each would wait for a collection. It has what is taken and not given. */
  let piece: Uint8Array<ArrayBuffer> | undefined;
  let part: Part | undefined;
  let isStoring = false;
  let storing: Promise<void> = Promise.resolve();
  const say: Tell = (event) => {
    if (!isClosed) tell(event);
  };

  /** Where the piece ends that fills now. No piece is in two parts. */
  const pieceEnd = (): number => Math.min(given + WRITE_BYTES, kept + PART_BYTES, size);

  function take(): void {
    for (let frame = waiting[0]; frame !== undefined && taken < pieceEnd(); frame = waiting[0]) {
      piece ??= new Uint8Array(Math.min(WRITE_BYTES, size - given));
      const bytes = frame.subarray(used, used + pieceEnd() - taken);
      piece.set(bytes, taken - given);
      used += bytes.length;
      taken += bytes.length;
      if (used < frame.length) continue;
      waiting.shift();
      release(frame);
      used = CHUNK_HEADER_BYTES;
    }
  }
  function openPart(): Part {
    const end = Math.min(kept + PART_BYTES, size);
    addGcPressure(end - kept);
    const { readable, writable } = new FixedLengthStream(end - kept);
    const key = transferPartKey(file.id, Math.floor(kept / PART_BYTES));
    return { end, writer: writable.getWriter(), stored: guarded("store a part of the copy", () => bucket.put(key, readable)) };
  }
  /** Gives the bucket what has arrived, in whole pieces. */
  async function store(): Promise<void> {
    isStoring = true;
    try {
      for (take(); piece !== undefined && taken > given && taken === pieceEnd() && !isClosed; take()) {
        part ??= openPart();
        const put = await give(piece.subarray(0, taken - given), part);
        if (put?.ok === false) return say({ kind: "failed", ...put.error });
        given = taken;
        if (put !== undefined) [kept, part] = [given, undefined];
        if (given - acked < LIMITS.transferPartBytes && put === undefined) continue;
        acked = given;
        say({ kind: "acked", offset: acked, kept });
      }
    } finally {
      isStoring = false;
      if (isClosed) releasePiece();
    }
  }
  /** The result of the whole part, with its last piece or when it fails. */
  async function give(bytes: Uint8Array, { end, writer, stored }: Part): Promise<Result<unknown> | undefined> {
    const written = writer.write(bytes).then(
      () => undefined,
      () => stored,
    );
    // A bucket that fails need not read the rest.
    const failed = await Promise.race([written, stored]);
    if (failed !== undefined || given + bytes.length < end) return failed;
    // The bucket has the last word.
    writer.close().catch(() => undefined);
    return stored;
  }
  function releasePiece(): void {
    if (piece !== undefined) release(piece);
    piece = undefined;
  }

  async function join(sha256: string): Promise<void> {
    await storing;
    if (isClosed) return;
    releasePiece();
    const stored = await storeReceived(bucket, { ...file, sizeBytes: size, sha256 }, alive);
    say(stored.ok ? { kind: "stored", sha256 } : { kind: "failed", ...stored.error });
  }

  return {
    offer(sizeBytes) {
      size = sizeBytes;
      taken = given = acked = kept = Math.min(storedBytes, sizeBytes);
      say({ kind: "accepted", offset: kept });
    },
    chunk(frame) {
      waiting.push(frame);
      if (isStoring) return;
      storing = store();
      background("transfer_write", storing);
    },
    finish: (sha256) => background("transfer_store", join(sha256)),
    close() {
      isClosed = true;
      for (const frame of waiting.splice(0)) release(frame);
      // What the bucket has of an unfinished part is nothing.
      part?.writer.abort(new Error("the attempt is over")).catch(() => undefined);
      // A piece that is being written is released afterwards.
      if (!isStoring) releasePiece();
      return true;
    },
    async idle() {
      await storing;
      await part?.stored;
    },
  };
}
