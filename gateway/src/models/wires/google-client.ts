/**
 * Stands in for `@google/genai` in the bundle (scripts/bundle-gateway.ts): the one request that pi-ai's adapter makes, over the call's
 * own `fetch`. The real client is 400 KB of other services, and bounds neither bytes nor redirects.
 */
import { isJsonObject, type JsonObject } from "../../../../protocol/runtime/json-object.ts";
import { callMeans } from "./call-means.ts";
import { NO_KEY } from "./wire.ts";

const words = <const W extends string>(...names: readonly W[]): Readonly<Record<W, W>> =>
  Object.fromEntries(names.map((name) => [name, name])) as Record<W, W>;
export const FunctionCallingConfigMode = words("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED");
export const ThinkingLevel = words("THINKING_LEVEL_UNSPECIFIED", "MINIMAL", "LOW", "MEDIUM", "HIGH");
export const FinishReason = words(
  "FINISH_REASON_UNSPECIFIED",
  "STOP",
  "MAX_TOKENS",
  "SAFETY",
  "RECITATION",
  "LANGUAGE",
  "OTHER",
  "BLOCKLIST",
  "PROHIBITED_CONTENT",
  "SPII",
  "MALFORMED_FUNCTION_CALL",
  "IMAGE_SAFETY",
  "UNEXPECTED_TOOL_CALL",
  "IMAGE_PROHIBITED_CONTENT",
  "NO_IMAGE",
  "IMAGE_RECITATION",
  "IMAGE_OTHER",
);

interface ClientOptions {
  readonly apiKey: string;
  readonly httpOptions?: { readonly baseUrl?: string; readonly headers?: Readonly<Record<string, string>> };
}
interface Params {
  readonly model: string;
  readonly contents: unknown;
  readonly config?: JsonObject & { readonly abortSignal?: AbortSignal };
}
/** The fields that stand beside `contents`; all others belong to `generationConfig`. */
const OUTSIDE = new Set(["tools", "toolConfig"]);

export function requestBody({ contents, config = {} }: Params): JsonObject {
  const { abortSignal: _, systemInstruction, ...rest } = config;
  const outside = Object.entries(rest).filter(([name]) => OUTSIDE.has(name));
  const generation = Object.entries(rest).filter(([name]) => !OUTSIDE.has(name));
  return {
    contents,
    ...(typeof systemInstruction === "string" ? { systemInstruction: { role: "user", parts: [{ text: systemInstruction }] } } : {}),
    ...Object.fromEntries(outside),
    ...(generation.length === 0 ? {} : { generationConfig: Object.fromEntries(generation) }),
  };
}

export class GoogleGenAI {
  readonly #options: ClientOptions;
  readonly models = { generateContentStream: (params: Params) => this.#stream(params) };

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  async #stream(params: Params): Promise<AsyncGenerator<JsonObject>> {
    const { apiKey, httpOptions: { baseUrl = "", headers = {} } = {} } = this.#options;
    const signal = params.config?.abortSignal;
    const response = await callMeans(signal).fetch(`${baseUrl}/models/${encodeURI(params.model)}:streamGenerateContent?alt=sse`, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...(apiKey === NO_KEY ? {} : { "x-goog-api-key": apiKey }), ...headers },
      body: JSON.stringify(requestBody(params)),
      ...(signal ? { signal } : {}),
    });
    return chunks(response.body);
  }
}

/** The guard passes whole events with one line of data each. */
async function* chunks(body: ReadableStream<Uint8Array> | null): AsyncGenerator<JsonObject> {
  if (body === null) return;
  let rest = "";
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!line.startsWith("data: ")) continue;
      const chunk: unknown = JSON.parse(line.slice("data: ".length));
      if (isJsonObject(chunk)) yield chunk;
    }
  }
}
