/**
 * `/channels/{name}/...`: forwards a platform's request to a channel that accepts webhooks; channels have no address of their own.
 * Refuses everything else: other channels, other methods, browsers and large bodies, and drops credentials of this gateway. Only the
 * channel can verify the platform (signatures).
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { WebhookChannel } from "../../ports/channels.ts";
import { isBrowser, readAtMost } from "./body.ts";
import { NOT_FROM_A_PAGE, methodRefused, problemResponse, SAFE_HEADERS } from "./problem.ts";
import { Slots } from "./slots.ts";

const PATH = /^\/channels\/([a-z][a-z0-9_]{0,62})(\/.*)$/;
/** How long a channel's answer about its capabilities is cached. */
const CAPABILITIES_MS = 60_000;
/** Headers that are not forwarded: those of this gateway, of the connection, of browsers and of proxies before us. */
const DROPPED =
  /^(authorization|cookie|host|connection|content-length|expect|keep-alive|te|trailer|transfer-encoding|upgrade|x-forwarded-.*|forwarded|x-real-ip|(proxy|sec|cf)-.*)$/;
const FORWARDED_TO_CALLER = ["Content-Type", "Retry-After"] as const;

/** What a channel reports about itself. */
interface Capabilities {
  readonly webhooks: boolean;
  readonly signatureHeader?: string;
}
const HEADER = /^[A-Za-z0-9-]{1,64}$/;

export class Webhooks {
  readonly #now: () => number;
  readonly #known = new Map<string, Capabilities & { readonly until: number }>();
  readonly #slots = new Slots(LIMITS.webhooksAtOnce);
  constructor(now: () => number) {
    this.#now = now;
  }

  async respond(request: Request, find: (name: string) => WebhookChannel | undefined): Promise<Response> {
    const url = new URL(request.url);
    const [, name = "", path = ""] = PATH.exec(url.pathname) ?? [];
    const channel = name === "" ? undefined : find(name);
    if (channel === undefined) return problemResponse("channel.unknown");
    if (isBrowser(request.headers))
      return problemResponse("auth.origin", "Channels answer platforms, not pages in a browser.", { hint: NOT_FROM_A_PAGE });
    const release = this.#slots.take(name);
    if (release === undefined) return problemResponse("limit.rate", "Too many requests to this channel at once.", { hint: "Try again." });
    try {
      const { webhooks, signatureHeader } = await this.#capabilitiesOf(name, channel);
      if (!webhooks) return problemResponse("channel.unknown");
      if (request.method !== "POST" && request.method !== "GET") return methodRefused("GET, POST", "Channels take POST and GET.");
      if (signatureHeader !== undefined && !request.headers.has(signatureHeader))
        return problemResponse("auth.required", `The header ${signatureHeader} with the platform's signature is missing.`);
      const body = request.method === "GET" ? null : await readAtMost(request, LIMITS.webhookBytes, LIMITS.webhookBodyMs);
      if (body === "late") return problemResponse("protocol.late");
      if (body === "full") return problemResponse("limit.rate");
      if (body === "large")
        return problemResponse("protocol.too_large", `A request to a channel has at most ${LIMITS.webhookBytes} bytes.`);
      return await this.#ask(channel, new URL(path + url.search, "https://channel.invalid"), request, body);
    } finally {
      release();
    }
  }

  async #capabilitiesOf(name: string, channel: WebhookChannel): Promise<Capabilities> {
    const known = this.#known.get(name);
    if (known !== undefined && this.#now() < known.until) return known;
    const found = await channel.describe({}).then(
      ({ webhooks, signatureHeader }): Capabilities => ({
        webhooks: webhooks === true,
        ...(typeof signatureHeader === "string" && HEADER.test(signatureHeader) ? { signatureHeader } : {}),
      }),
      () => undefined,
    );
    if (found === undefined) return { webhooks: false };
    this.#known.set(name, { ...found, until: this.#now() + CAPABILITIES_MS });
    return found;
  }

  async #ask(channel: WebhookChannel, url: URL, request: Request, body: Uint8Array<ArrayBuffer> | null): Promise<Response> {
    const headers = new Headers([...request.headers].filter(([header]) => !DROPPED.test(header)));
    const signal = AbortSignal.timeout(LIMITS.webhookMs);
    let answer: Response;
    try {
      answer = await channel.fetch(new Request(url, { method: request.method, headers, body, redirect: "manual", signal }));
    } catch {
      return problemResponse("channel.failed");
    }
    // An upgrade or a redirect would lead the caller to an address that this gateway does not answer for.
    if (answer.status < 200 || (answer.status >= 300 && answer.status < 400)) {
      await answer.body?.cancel();
      return problemResponse("channel.failed");
    }
    const kept = FORWARDED_TO_CALLER.flatMap((header): [string, string][] => {
      const value = answer.headers.get(header);
      return value === null ? [] : [[header, value]];
    });
    return new Response(answer.body, { status: answer.status, headers: [...kept, ...Object.entries(SAFE_HEADERS)] });
  }
}
