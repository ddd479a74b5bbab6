/**
 * Stores transcripts in the bucket: gzip JSONL with metadata, under the keys of keys.ts. An archive counts only after it was
 * read back with the right size and checksum (promises P17). Storing is idempotent and must never overwrite different
 * content.
 */
import { toHex } from "../../../protocol/runtime/hex.ts";
import type { ArchiveInput, ArchiveReceipt, ArchiveStore } from "../ports/archives.ts";
import type { Message } from "../ports/messages.ts";
import { failure, type Result, storageFailed, type Failure } from "../ports/result.ts";
import { readLine, writeLine } from "./archive-line.ts";
import { type Bucket, hasBody } from "./bucket.ts";
import { archiveKey, partArchiveKey } from "./keys.ts";

const archiveFailed = (message: string): Failure => failure("session.archive_failed", message, "Try again in a moment.");

export interface StoredArchive extends ArchiveReceipt {
  readonly sizeBytes: number;
}
export interface Archives extends ArchiveStore {
  put(input: ArchiveInput): Promise<Result<StoredArchive>>;
  read(key: string): Promise<Result<readonly Message[]>>;
}
const MAX_UNPACKED_BYTES = 256 * 1024 * 1024;
const SHA256 = "sha256";

const sha256 = async (bytes: ArrayBuffer): Promise<string> => toHex(await crypto.subtle.digest("SHA-256", bytes));

async function pack(messages: Iterable<Message>): Promise<{ bytes: ArrayBuffer; count: number }> {
  const encoder = new TextEncoder();
  let count = 0;
  const lines = messages[Symbol.iterator]();
  const source = new ReadableStream<Uint8Array>({
    pull(controller) {
      let piece = "";
      while (piece.length < 65_536) {
        const next = lines.next();
        if (next.done) {
          if (piece !== "") controller.enqueue(encoder.encode(piece));
          controller.close();
          return;
        }
        count++;
        piece += `${writeLine(next.value)}\n`;
      }
      controller.enqueue(encoder.encode(piece));
    },
  });
  const bytes = await new Response(source.pipeThrough(new CompressionStream("gzip"))).arrayBuffer();
  return { bytes, count };
}

export function createArchives(bucket: Bucket): Archives {
  /** Whether the object at the key has exactly these bytes. */
  async function holds(key: string, bytes: ArrayBuffer, hash: string): Promise<boolean> {
    const head = await bucket.head(key);
    if (!head || head.size !== bytes.byteLength) return false;
    if (head.checksums.sha256) return toHex(head.checksums.sha256) === hash;
    const object = await bucket.get(key);
    return object !== null && hasBody(object) && (await sha256(await object.arrayBuffer())) === hash;
  }

  return {
    async put(input) {
      try {
        const { bytes, count } = await pack(input.messages);
        const hash = await sha256(bytes);
        const metadata: Record<string, string> = {
          sessionKey: input.sessionKey,
          sessionId: input.sessionId,
          agentId: input.agentId,
          ...(input.part === undefined ? {} : { partNumber: String(input.part) }),
          messageCount: String(count),
          archivedAt: String(input.archivedAt),
          ...(input.part === undefined
            ? {
                inputTokens: String(input.tokens.input),
                outputTokens: String(input.tokens.output),
                totalTokens: String(input.tokens.total),
              }
            : {}),
          [SHA256]: hash,
        };
        const usual =
          input.part === undefined
            ? archiveKey(input.agentId, input.sessionId)
            : partArchiveKey(input.agentId, input.sessionId, input.part);
        // Another transcript already has this session's name and must be kept, so this one is stored as a part.
        for (
          let key = usual, at = input.archivedAt, tries = 0;
          tries < 8;
          tries++, key = partArchiveKey(input.agentId, input.sessionId, ++at)
        ) {
          const receipt = { key, sha256: hash, sizeBytes: bytes.byteLength, count };
          if (await holds(key, bytes, hash)) return { ok: true, value: receipt };
          const put = await bucket.put(key, bytes, {
            onlyIf: { etagDoesNotMatch: "*" },
            sha256: hash,
            httpMetadata: { contentType: "application/gzip" },
            customMetadata: metadata,
          });
          if (!put) continue;
          if (await holds(key, bytes, hash)) return { ok: true, value: receipt };
          return archiveFailed("The stored transcript failed its check, so nothing was removed.");
        }
        return archiveFailed("Other transcripts already use this session's name, so nothing was removed.");
      } catch {
        return storageFailed("The transcript could not be stored, so nothing was removed.");
      }
    },

    async read(key) {
      try {
        const object = await bucket.get(key);
        if (!object || !hasBody(object)) return failure("path.not_found", "There is no such transcript.");
        const reader = object.body.pipeThrough(new DecompressionStream("gzip")).getReader();
        const decoder = new TextDecoder();
        const messages: Message[] = [];
        let rest = "";
        let bytes = 0;
        for (;;) {
          const { value, done } = await reader.read();
          bytes += value?.byteLength ?? 0;
          if (bytes > MAX_UNPACKED_BYTES) {
            await reader.cancel();
            return failure("file.too_large", "The transcript is too large to be read at once.");
          }
          rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
          const lines = rest.split("\n");
          rest = done ? "" : (lines.pop() ?? "");
          for (const line of lines) if (line !== "") messages.push(readLine(line));
          if (done) return { ok: true, value: messages };
        }
      } catch {
        return storageFailed("The transcript could not be read.");
      }
    },
  };
}
