/**
 * The example channel's Worker: a guide to writing one (README.md), and what end-to-end tests talk through.
 *
 *   POST /{account}             {"id", "from", "text", "name"?}    a message for the agent; the same id again is the same message
 *   GET  /{account}?after=N     what the agent said after the N-th, when there is no callback
 *
 * Both with X-Timestamp (epoch ms) and X-Signature, the hex HMAC-SHA256 of `timestamp.body` under the account's secret.
 */
import { AccountObject, type KitEnv } from "../../kit/src/account-object.ts";
import { type ChannelEnv, ChannelEntrypoint } from "../../kit/src/entrypoint.ts";
import type { Platform, PlatformHost } from "../../kit/src/platform.ts";
import { ExamplePlatform, isSigned, readSettings } from "./platform.ts";

interface Call {
  readonly method: string;
  readonly after: number;
  readonly body: string;
  readonly timestamp: string;
  readonly signature: string;
}
interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}
const MAX_BODY_BYTES = 262_144;
const MAX_SKEW_MS = 300_000;

export class ExampleAccount extends AccountObject<KitEnv> {
  protected readonly channel = "example";
  #platform: ExamplePlatform | undefined;
  protected makePlatform(host: PlatformHost, config: Readonly<Record<string, unknown>>): Platform {
    this.#platform = new ExamplePlatform(host, readSettings(config));
    return this.#platform;
  }

  async call({ method, after, body, timestamp, signature }: Call): Promise<Answer> {
    // Makes the platform, if this life has none yet.
    this.describe();
    const platform = this.#platform;
    const secret = platform?.settings?.secret;
    const fresh = Math.abs(Date.now() - Number(timestamp)) <= MAX_SKEW_MS;
    if (!platform || secret === undefined || !fresh || !(await isSigned(secret, timestamp, body, signature)))
      return { status: 401, body: { error: "The signature is missing, wrong or too old." } };
    if (method === "GET") return { status: 200, body: { messages: platform.fetchAfter(after) } };
    const message = readMessage(body);
    if (!message) return { status: 400, body: { error: "Send {id, from, text} as JSON; id and from have at most 256 characters." } };
    return { status: 200, body: { accepted: true, duplicate: !platform.receive(message) } };
  }
}

function readMessage(body: string): { id: string; from: string; text: string; name?: string } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { id, from, text, name } = value as Record<string, unknown>;
  const short = (part: unknown): part is string => typeof part === "string" && part !== "" && part.length <= 256 && part.isWellFormed();
  if (!short(id) || !short(from) || typeof text !== "string" || text.trim() === "") return undefined;
  return { id, from, text, ...(short(name) ? { name } : {}) };
}

interface ExampleEnv extends ChannelEnv {
  readonly ACCOUNT: DurableObjectNamespace<ExampleAccount>;
}
export default class ExampleChannel extends ChannelEntrypoint<ExampleEnv> {
  override async fetch(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const account = /^\/([a-z0-9_-]{1,64})$/.exec(url.pathname)?.[1];
    if (account === undefined || (request.method !== "GET" && request.method !== "POST"))
      return Response.json({ error: "POST or GET /{account}." }, { status: 404 });
    if (Number(request.headers.get("Content-Length") ?? "0") > MAX_BODY_BYTES) return tooLarge();
    const body = request.method === "POST" ? await request.text() : "";
    if (body.length > MAX_BODY_BYTES) return tooLarge();
    const { status, body: answer } = await this.env.ACCOUNT.getByName(account).call({
      method: request.method,
      after: Math.max(0, Number.parseInt(url.searchParams.get("after") ?? "0", 10) || 0),
      body,
      timestamp: request.headers.get("X-Timestamp") ?? "",
      signature: request.headers.get("X-Signature") ?? "",
    });
    return Response.json(answer, { status });
  }
}
const tooLarge = (): Response => Response.json({ error: `At most ${MAX_BODY_BYTES} bytes.` }, { status: 413 });
