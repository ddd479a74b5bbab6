/** SessionMedia over the bucket: combines the parts that sessions use. Its only state is the cache, which all sessions share. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { SessionMedia, SpeechAi } from "../../ports/media.ts";
import type { Readers } from "../../ports/readers.ts";
import { type Bucket, hasBody } from "../../storage/bucket.ts";
import { deleteMedia } from "../../storage/media-objects.ts";
import { MediaCache } from "./cache.ts";
import { hydrate, IMAGE_BYTES } from "./hydrate.ts";
import { Readings } from "./readings.ts";
import { takeAttachments, takeResult } from "./take.ts";
import { type Fetch, transcribe } from "./transcribe.ts";

const shared = new MediaCache(LIMITS.mediaCacheBytes);

export interface SessionMediaDeps {
  readonly ai?: SpeechAi | undefined;
  readonly fetch?: Fetch;
  readonly cache?: MediaCache;
  /** Images with more pixels are not scaled; by default what the owner's machine can hold. */
  readonly imagePixels?: number;
  readonly readers?: Readers | undefined;
}
export function createSessionMedia(bucket: Bucket, deps: SessionMediaDeps = {}): SessionMedia {
  const fetch: Fetch = deps.fetch ?? ((input, init) => globalThis.fetch(input, init));
  const recording = async (key: string): Promise<ArrayBuffer | undefined> => {
    const found = await bucket.get(key);
    return found && hasBody(found) ? found.arrayBuffer() : undefined;
  };
  const cache = deps.cache ?? shared;
  const { imagePixels = LIMITS.imagePixels, readers } = deps;
  const readings = new Readings(bucket, { imagePixels, imageBytes: IMAGE_BYTES, readers });
  return {
    takeAttachments: (input) => takeAttachments(input, bucket),
    takeResult: (input) => takeResult(input, bucket),
    hydrate: (messages, view) => hydrate({ messages, ...view, bucket, cache, readings }),
    transcribe: (block, config, access, signal) => transcribe(block, config, access, signal, { recording, fetch, ai: deps.ai }),
    delete: (sessionKey, before, keep) => deleteMedia(bucket, sessionKey, { before, keep, gone: (key) => cache.delete(key) }),
  };
}
