/**
 * A fake of the cloud providers of models: real HTTP on loopback. What a request is answered in follows from its path, as at the real
 * services: `/responses` (OpenAI, Azure), `:streamGenerateContent` (Gemini, Vertex AI), `/v1/chat/completions` (Mistral),
 * `/model/ID/converse-stream` (Bedrock), `/token` (Google's access tokens). Requests to Bedrock must carry a right signature of the
 * keys, where `awsSecret` is given. Deterministic; never waits for time.
 */
import { createHash, createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { bedrockError, bedrockFrames, type CloudWire, geminiEvents, responsesEvents } from "./cloud-wires.ts";
import { type FakeAnswer, openaiEvents } from "./model-wire.ts";

export interface CloudScript extends FakeAnswer {
  /** An HTTP error with this text. */
  readonly status?: number;
  readonly message?: string;
  /** An error inside the stream, after the text: the wire's own kind of rate limit. */
  readonly limited?: boolean;
}
export interface CloudRequest {
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly wire: CloudWire | "token";
  readonly body: Readonly<Record<string, unknown>>;
}
export interface CloudModel {
  readonly url: string;
  readonly requests: CloudRequest[];
  enqueue(...scripts: CloudScript[]): void;
  close(): Promise<void>;
}

function wireOf(path: string): CloudRequest["wire"] | undefined {
  if (path.endsWith("/responses")) return "openai-responses";
  if (path.endsWith(":streamGenerateContent")) return "google-generative-ai";
  if (path.endsWith("/v1/chat/completions")) return "mistral-conversations";
  if (/^\/model\/[^/]+\/converse-stream$/.test(path)) return "bedrock-converse-stream";
  return path === "/token" ? "token" : undefined;
}
function chunksOf(wire: CloudWire, script: CloudScript, ids: () => string): readonly (string | Buffer)[] {
  const answer: CloudScript = script.limited === true ? { ...script, stop: "missing" } : script;
  switch (wire) {
    case "openai-responses": {
      const error = { type: "error", code: "rate_limit_exceeded", message: "Slow down", param: null };
      return [...responsesEvents(answer, "fake", ids), ...(script.limited ? [`event: error\ndata: ${JSON.stringify(error)}\n\n`] : [])];
    }
    case "google-generative-ai": {
      const error = { error: { code: 429, message: "Slow down", status: "RESOURCE_EXHAUSTED" } };
      return [...geminiEvents(answer, "fake", ids), ...(script.limited ? [`data: ${JSON.stringify(error)}\r\n\r\n`] : [])];
    }
    case "mistral-conversations": {
      const error = { error: { message: "Slow down", type: "rate_limit_error", code: 429 } };
      const events = openaiEvents(answer, "fake", ids).map(({ bytes }) => bytes);
      return [...events, ...(script.limited ? [`data: ${JSON.stringify(error)}\n\n`] : [])];
    }
    case "bedrock-converse-stream":
      return [...bedrockFrames(answer, "fake", ids), ...(script.limited ? [bedrockError("throttlingException", "Slow down")] : [])];
  }
}
/** The body of an HTTP error, in the words of each service. */
function errorOf(wire: CloudWire, status: number, message: string): readonly [body: unknown, headers: Record<string, string>] {
  switch (wire) {
    case "google-generative-ai":
      return [[{ error: { code: status, message, status: "ERROR" } }], {}];
    case "bedrock-converse-stream":
      return [{ message }, { "x-amzn-errortype": status === 429 ? "ThrottlingException" : "ValidationException" }];
    case "mistral-conversations":
      return [{ object: "error", message, type: "invalid_request_error", code: status }, {}];
    default:
      return [{ error: { message, type: "invalid_request_error", code: null } }, {}];
  }
}

/** AWS's signature version 4, from the server's side. */
function isSigned({ method, url, headers }: IncomingMessage, body: string, secret: string): boolean {
  const given = /Credential=([^/]+)\/(\d+)\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)/.exec(
    headers.authorization ?? "",
  );
  if (given === null) return false;
  const [, , date = "", region = "", service = "", signed = "", signature] = given;
  const sha = (text: string): string => createHash("sha256").update(text).digest("hex");
  const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();
  const [path = "", query = ""] = (url ?? "").split("?");
  // The path is encoded once more than it was sent.
  const canonicalPath = path.split("/").map(encodeURIComponent).join("/");
  const lines = signed.split(";").map((name) => `${name}:${String(headers[name]).trim().replace(/\s+/g, " ")}\n`);
  const canonical = [method, canonicalPath, query, lines.join(""), signed, sha(body)].join("\n");
  const text = ["AWS4-HMAC-SHA256", headers["x-amz-date"], `${date}/${region}/${service}/aws4_request`, sha(canonical)].join("\n");
  const key = [date, region, service, "aws4_request"].reduce<Buffer>((last, part) => hmac(last, part), Buffer.from(`AWS4${secret}`));
  return hmac(key, text).toString("hex") === signature;
}

export async function startCloudModel(options: { readonly awsSecret?: string } = {}): Promise<CloudModel> {
  const queue: CloudScript[] = [];
  const requests: CloudRequest[] = [];
  let counter = 0;
  const ids = (): string => `fake${++counter}`;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const text = Buffer.concat(parts).toString("utf8");
    const url = request.url ?? "/";
    const wire = wireOf(url.split("?")[0] ?? "/");
    const json = (status: number, body: unknown, headers: Record<string, string> = {}): void => {
      response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
    };
    if (wire === undefined) return json(404, { error: { message: `no such path: ${url}` } });
    const body = wire === "token" ? Object.fromEntries(new URLSearchParams(text)) : (JSON.parse(text) as Record<string, unknown>);
    requests.push({ url, headers: request.headers, wire, body });
    if (wire === "token") return json(200, { access_token: `ya29.fake-${requests.length}`, expires_in: 3600, token_type: "Bearer" });
    if (wire === "bedrock-converse-stream" && options.awsSecret !== undefined && !isSigned(request, text, options.awsSecret))
      return json(403, { message: "The request signature we calculated does not match the signature you provided." });
    const script = queue.shift() ?? { text: "Hello." };
    if (script.status !== undefined) {
      const [error, headers] = errorOf(wire, script.status, script.message ?? `fake ${script.status}`);
      return json(script.status, error, headers);
    }
    const type = wire === "bedrock-converse-stream" ? "application/vnd.amazon.eventstream" : "text/event-stream";
    response.writeHead(200, { "content-type": type });
    for (const chunk of chunksOf(wire, script, ids)) response.write(chunk);
    response.end();
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    enqueue: (...scripts) => void queue.push(...scripts),
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
