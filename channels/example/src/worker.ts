/**
 * The example channel's Worker: the guide for new channels (README.md) and the channel of the end-to-end tests.
 *
 *   POST /{account}             {"id", "from", "text", "name"?, "group"?, "mentioned"?}    a message; idempotent by id
 *   GET  /{account}?after=N     answers after number N, when there is no callback
 *
 * Both with X-Timestamp (epoch ms) and X-Signature (signature.ts). `ACCOUNTS` lists the served accounts, separated by commas.
 */
import { AccountObject, type KitEnv } from "../../kit/src/account-object.ts";
import { type ChannelEnv, ChannelEntrypoint } from "../../kit/src/entrypoint.ts";
import type { Platform, PlatformHost } from "../../kit/src/platform.ts";
import { readBody } from "../../kit/src/read-body.ts";
import { ExamplePlatform, type Incoming, readSettings } from "./platform.ts";
import { isSigned } from "./signature.ts";

const MAX_BODY_BYTES = 262_144;
const MAX_SKEW_MS = 300_000;
const refuse = (status: number, error: string): Response => Response.json({ error }, { status });

export class ExampleAccount extends AccountObject<KitEnv> {
  protected readonly channel = "example";
  #platform: ExamplePlatform | undefined;
  protected makePlatform(host: PlatformHost, config: Readonly<Record<string, unknown>>): Platform {
    this.#platform = new ExamplePlatform(host, readSettings(config));
    return this.#platform;
  }

  override async fetch(request: Request): Promise<Response> {
    const bytes = await readBody(request.body, MAX_BODY_BYTES);
    if (!bytes) return refuse(413, `The message is too large: at most ${MAX_BODY_BYTES} bytes.`);
    // Reading the status creates the platform when this instance has none.
    const started = this.status().extra?.["started"] === true;
    const platform = this.#platform;
    if (!started || !platform || typeof platform.settings === "string") return refuse(503, "This account is not started.");
    const body = new TextDecoder().decode(bytes);
    const timestamp = request.headers.get("X-Timestamp") ?? "";
    const fresh = Math.abs(Date.now() - Number(timestamp)) <= MAX_SKEW_MS;
    if (!fresh || !(await isSigned(platform.settings.secret, timestamp, body, request.headers.get("X-Signature") ?? "")))
      return refuse(401, "The signature is missing, wrong or too old.");
    if (request.method === "GET") {
      const after = Number.parseInt(new URL(request.url).searchParams.get("after") ?? "0", 10);
      return Response.json({ messages: platform.keptAfter(Math.max(0, after || 0)) });
    }
    const message = readMessage(Object(await new Response(body).json().catch(() => undefined)));
    if (!message) return refuse(400, "Send {id, from, text} as JSON. All three are strings; id and from have at most 256 characters.");
    try {
      return Response.json({ accepted: true, duplicate: !platform.receive(message) });
    } catch {
      return refuse(503, "Too many messages are queued. Send it again later.");
    }
  }
}

function readMessage({ id, from, text, name, group, mentioned }: Readonly<Record<string, unknown>>): Incoming | undefined {
  const short = (part: unknown): part is string => typeof part === "string" && part !== "" && part.length <= 256 && part.isWellFormed();
  if (!short(id) || !short(from) || typeof text !== "string" || text.trim() === "") return undefined;
  if (group !== undefined && !short(group)) return undefined;
  return { id, from, text, ...(short(name) ? { name } : {}), ...(group === undefined ? {} : { group }), mentioned: mentioned === true };
}

interface ExampleEnv extends ChannelEnv {
  readonly ACCOUNT: DurableObjectNamespace<ExampleAccount>;
  readonly ACCOUNTS?: string;
}
export default class ExampleChannel extends ChannelEntrypoint<ExampleEnv> {
  override fetch(request: Request): Response | Promise<Response> {
    const account = new URL(request.url).pathname.slice(1);
    // Only listed accounts: a stranger's request must not create a Durable Object.
    const isServed = (this.env.ACCOUNTS ?? "default").split(",").includes(account);
    if (!isServed || !["GET", "POST"].includes(request.method)) return refuse(404, "POST or GET /{account}.");
    return this.env.ACCOUNT.getByName(account).fetch(request);
  }
}
