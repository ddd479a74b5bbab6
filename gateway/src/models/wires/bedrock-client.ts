/**
 * Stands in for `@aws-sdk/client-bedrock-runtime` in the bundle (scripts/lib/bundle-parts.ts): the one request that pi-ai's adapter
 * makes, over the call's own `fetch`. The AWS client is 230 KB, tries again by itself, and bounds neither bytes nor redirects.
 */
import { AwsV4Signer } from "aws4fetch";
import { isJsonObject, type JsonObject } from "../../../../protocol/runtime/json-object.ts";
import type { AwsKeys } from "../cloud.ts";
import { callMeans } from "./call-means.ts";
import { eventMessages } from "./event-stream.ts";

export const StopReason = {
  END_TURN: "end_turn",
  STOP_SEQUENCE: "stop_sequence",
  MAX_TOKENS: "max_tokens",
  MODEL_CONTEXT_WINDOW_EXCEEDED: "model_context_window_exceeded",
  TOOL_USE: "tool_use",
} as const;
export const CachePointType = { DEFAULT: "default" } as const;
export const CacheTTL = { FIVE_MINUTES: "5m", ONE_HOUR: "1h" } as const;
export const ConversationRole = { ASSISTANT: "assistant", USER: "user" } as const;
export const ImageFormat = { GIF: "gif", JPEG: "jpeg", PNG: "png", WEBP: "webp" } as const;
export const ToolResultStatus = { ERROR: "error", SUCCESS: "success" } as const;

/** An error that the service names. pi-ai makes its own words of the name. */
export class BedrockRuntimeServiceException extends Error {}

export class ConverseStreamCommand {
  readonly input: JsonObject;
  constructor(input: JsonObject) {
    this.input = input;
  }
}

interface ClientConfig {
  readonly endpoint?: string;
  readonly region?: string;
  readonly token?: { readonly token: string };
}
interface Unsent {
  readonly request: { readonly headers: Record<string, string> };
}
type Middleware = (next: (args: Unsent) => Promise<unknown>) => (args: Unsent) => Promise<unknown>;

export class BedrockRuntimeClient {
  readonly #config: ClientConfig;
  readonly #build: Middleware[] = [];
  readonly middlewareStack = {
    add: (middleware: Middleware, { step }: { readonly step: string }): void => {
      if (step === "build") this.#build.push(middleware);
    },
  };

  constructor(config: ClientConfig) {
    this.#config = config;
  }

  async send({ input }: ConverseStreamCommand, { abortSignal }: { readonly abortSignal?: AbortSignal }) {
    const { modelId, ...rest } = input;
    const { region = "us-east-1", endpoint = `https://bedrock-runtime.${region}.amazonaws.com`, token } = this.#config;
    const url = new URL(`${endpoint.replace(/\/+$/, "")}/model/${encodeURIComponent(String(modelId))}/converse-stream`);
    const body = JSON.stringify(rest, (_name, value: unknown) => (value instanceof Uint8Array ? base64(value) : value));
    const headers: Record<string, string> = { "content-type": "application/json" };
    for (const middleware of this.#build) await middleware(() => Promise.resolve())({ request: { headers } });
    const { fetch, awsKeys } = callMeans(abortSignal);
    const authorized =
      token !== undefined
        ? { ...headers, authorization: `Bearer ${token.token}` }
        : awsKeys === undefined
          ? headers
          : await signedHeaders({ url: url.href, headers, body, region: regionOf(url, region) }, awsKeys);
    const response = await fetch(url, { method: "POST", headers: authorized, body, ...(abortSignal ? { signal: abortSignal } : {}) });
    const requestId = response.headers.get("x-amzn-requestid") ?? undefined;
    return { $metadata: { httpStatusCode: response.status, requestId }, stream: events(response.body) };
  }
}

async function signedHeaders(
  request: { readonly url: string; readonly headers: Record<string, string>; readonly body: string; readonly region: string },
  keys: AwsKeys,
): Promise<Record<string, string>> {
  const { headers } = await new AwsV4Signer({ ...request, ...keys, method: "POST", service: "bedrock" }).sign();
  return Object.fromEntries(headers);
}
/** The region of an address of AWS; another address is signed for the configured one. */
const regionOf = ({ hostname }: URL, region: string): string => /^bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\./.exec(hostname)?.[1] ?? region;
const base64 = (bytes: Uint8Array): string => {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
};

/** `{messageStart: {...}}` and so on, as the AWS client gives them. */
async function* events(body: ReadableStream<Uint8Array> | null): AsyncGenerator<JsonObject> {
  if (body === null) return;
  for await (const { headers, payload } of eventMessages(body)) {
    const value: unknown = payload.length === 0 ? {} : JSON.parse(new TextDecoder().decode(payload));
    const content = isJsonObject(value) ? value : {};
    if (headers.get(":message-type") === "event") {
      yield { [headers.get(":event-type") ?? ""]: withBytes(content) };
      continue;
    }
    const name = headers.get(":exception-type") ?? headers.get(":error-code") ?? "UnknownException";
    const message = content["message"] ?? headers.get(":error-message");
    throw Object.assign(new BedrockRuntimeServiceException(typeof message === "string" ? message : ""), {
      name: name.slice(0, 1).toUpperCase() + name.slice(1),
    });
  }
}
/** Hidden thoughts are bytes. */
function withBytes(event: JsonObject): JsonObject {
  const delta = event["delta"];
  const thought = isJsonObject(delta) ? delta["reasoningContent"] : undefined;
  if (!isJsonObject(delta) || !isJsonObject(thought) || typeof thought["redactedContent"] !== "string") return event;
  const redactedContent = Uint8Array.from(atob(thought["redactedContent"]), (char) => char.charCodeAt(0));
  return { ...event, delta: { ...delta, reasoningContent: { ...thought, redactedContent } } };
}
