/**
 * The only network access of the test runtime: requests to this machine (fake model servers) pass, everything else is refused.
 * Runs on the Node side of the pool, never inside workerd.
 */
import { fetch as runtimeFetch, Response, type Request } from "miniflare";

const LOOPBACK = new Set(["127.0.0.1", "localhost", "[::1]"]);

export async function blockOutbound(request: Request): Promise<Response> {
  const url = new URL(request.url);
  if (LOOPBACK.has(url.hostname)) return runtimeFetch(request);
  return new Response(`Tests do not use the network: ${request.method} ${url.origin} was refused.`, { status: 599 });
}
