/**
 * A stub of the gateway: forwards the channel's calls to the test and calls the channel for the test. Has no state, so that it may be
 * killed together with the channel.
 */
import { WorkerEntrypoint } from "cloudflare:workers";

interface Env {
  readonly CHANNEL: Fetcher & Readonly<Record<string, (params: unknown) => Promise<unknown>>>;
  readonly STORAGE: R2Bucket;
  readonly TEST_URL: string;
}
async function ask(env: Env, method: string, params: unknown): Promise<unknown> {
  const response = await fetch(`${env.TEST_URL}/${method}`, { method: "POST", body: JSON.stringify(params) });
  if (!response.ok) throw new Error("the gateway is away");
  return response.json();
}
export class GatewayEntrypoint extends WorkerEntrypoint<Env> {
  async storeFile(params: unknown, bytes: Uint8Array): Promise<unknown> {
    const slot = (await this.media(params)) as { readonly r2Key?: string };
    if (slot.r2Key !== undefined) await this.env.STORAGE.put(slot.r2Key, bytes);
    return slot;
  }
  async readFile({ r2Key, maxBytes }: { readonly r2Key: string; readonly maxBytes: number }): Promise<unknown> {
    const object = await this.env.STORAGE.get(r2Key);
    if (!object) return null;
    return { sizeBytes: object.size, ...(object.size > maxBytes ? {} : { bytes: new Uint8Array(await object.arrayBuffer()) }) };
  }
  inbound(params: unknown): Promise<unknown> {
    return ask(this.env, "inbound", params);
  }
  media(params: unknown): Promise<unknown> {
    return ask(this.env, "media", params);
  }
  status(params: unknown): Promise<unknown> {
    return ask(this.env, "status", params);
  }
  delivered(params: unknown): Promise<unknown> {
    return ask(this.env, "delivered", params);
  }
  mayDeliver(params: unknown): Promise<unknown> {
    return ask(this.env, "mayDeliver", params);
  }
}
export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const url = new URL(request.url);
    const [, place = "", rest = ""] = /^\/(file|worker|call)(?:\/(.*))?$/.exec(url.pathname) ?? [];
    // The channel's own HTTP route.
    if (place === "worker") return env.CHANNEL.fetch(new Request(new URL(`/${rest}${url.search}`, url), request));
    if (place === "file") {
      const key = url.searchParams.get("key") ?? "";
      if (request.method === "PUT") {
        await env.STORAGE.put(key, await request.arrayBuffer());
        return Response.json({ ok: true });
      }
      const object = await env.STORAGE.get(key);
      return new Response(object?.body ?? null, { status: object ? 200 : 404 });
    }
    try {
      // An RPC stub answers to every property name.
      const answer = await (env.CHANNEL[rest] as (params: unknown) => Promise<unknown>)(await request.json());
      return Response.json(answer ?? null);
    } catch (error) {
      return new Response(error instanceof Error ? error.message : String(error), { status: 500 });
    }
  },
};
