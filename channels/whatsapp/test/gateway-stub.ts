/**
 * Stands where the gateway stands: serves the channel what a gateway serves, by asking the test, and calls the channel when the test
 * asks for it. Holds nothing itself, so that it may be killed with the channel.
 */
import { WorkerEntrypoint } from "cloudflare:workers";

interface Env {
  readonly CHANNEL: Readonly<Record<string, (params: unknown) => Promise<unknown>>>;
  readonly STORAGE: R2Bucket;
  readonly TEST_URL: string;
}
async function ask(env: Env, method: string, params: unknown): Promise<unknown> {
  const response = await fetch(`${env.TEST_URL}/${method}`, { method: "POST", body: JSON.stringify(params) });
  if (!response.ok) throw new Error("the gateway is away");
  return response.json();
}
export class GatewayEntrypoint extends WorkerEntrypoint<Env> {
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
}
export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const key = searchParams.get("key") ?? "";
    if (pathname === "/put") {
      await env.STORAGE.put(key, await request.arrayBuffer());
      return Response.json({ ok: true });
    }
    if (pathname === "/get") {
      const object = await env.STORAGE.get(key);
      return new Response(object?.body ?? null, { status: object ? 200 : 404 });
    }
    try {
      const method = pathname.slice(1);
      // An RPC stub has every name; it is called as what it is.
      const answer = await (env.CHANNEL[method] as (params: unknown) => Promise<unknown>)(await request.json());
      return Response.json(answer ?? null);
    } catch (error) {
      return new Response(error instanceof Error ? error.message : String(error), { status: 500 });
    }
  },
};
