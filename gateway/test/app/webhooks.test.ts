/** `/channels/{name}/...`: which parts of a foreign request reach a channel, and which parts of its answer return. The channel is a fake Worker. */
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { checkProblemDetails } from "../../../protocol/gen/validators/checks.js";
import type { Env } from "../../src/platform/env.ts";
import { Webhooks } from "../../src/app/http/webhook.ts";
import type { WebhookChannel } from "../../src/ports/channels.ts";
import { ADMIN, fakeSessions, fetchWorker, seed } from "../support/gateway.ts";

const AT = "http://gsv.test/channels";
interface Seen {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}
let seen: Seen[];
let described: number;
let signatureHeader: string | undefined;
let answer: () => Response | Promise<Response>;
let open: WebhookChannel;
let closed: WebhookChannel;

beforeEach(async () => {
  await reset();
  fakeSessions();
  seen = [];
  described = 0;
  signatureHeader = undefined;
  answer = () => Response.json({ accepted: true });
  const make = (webhooks: boolean | undefined): WebhookChannel => ({
    describe: async () => {
      described++;
      return webhooks === undefined ? {} : { webhooks, ...(signatureHeader === undefined ? {} : { signatureHeader }) };
    },
    fetch: async (request) => {
      seen.push({
        url: request.url,
        method: request.method,
        headers: Object.fromEntries(request.headers),
        body: request.body === null ? "" : await request.text(),
      });
      return answer();
    },
  });
  open = make(true);
  closed = make(undefined);
});
afterEach(() => {
  vi.restoreAllMocks();
});

const bindings = (): Partial<Env> => Object.fromEntries([["CHANNEL_HOOK", open] as const, ["CHANNEL_QUIET", closed] as const]);
const call = (path: string, init?: RequestInit<IncomingRequestCfProperties>): Promise<Response> => fetchWorker(AT + path, init, bindings());
const post = (body: BodyInit, headers: Record<string, string> = {}): RequestInit<IncomingRequestCfProperties> => ({
  method: "POST",
  body,
  headers,
});
async function reasonOf(response: Response): Promise<string> {
  const body: unknown = await response.json();
  if (!checkProblemDetails(body)) throw new Error(`no problem details: ${JSON.stringify(body)}`);
  expect(body.status).toBe(response.status);
  return body.reason;
}

test("[S1] without a first token, webhooks of channels are refused too", async () => {
  expect(await reasonOf(await call("/hook/default", post("x")))).toBe("auth.not_configured");
  expect(seen).toEqual([]);
});

test("a platform's request reaches its channel with path, query, body and the platform's headers", async () => {
  await seed();
  const response = await call("/hook/default/a%2Fb?after=1&x=%20", post('{"a":1}', { "X-Signature": "abc", "Content-Type": "text/x" }));
  expect(response.status).toBe(200);
  expect(await response.json()).toEqual({ accepted: true });
  expect(seen).toHaveLength(1);
  expect(seen[0]).toMatchObject({ url: "https://channel.invalid/default/a%2Fb?after=1&x=%20", method: "POST", body: '{"a":1}' });
  expect(seen[0]?.headers).toMatchObject({ "x-signature": "abc", "content-type": "text/x" });
  await call("/hook/default?after=2");
  expect(seen[1]).toMatchObject({ url: "https://channel.invalid/default?after=2", method: "GET", body: "" });
});

test("[S5] the gateway's credentials and the headers of proxies and browsers are not forwarded", async () => {
  await seed();
  await call(
    "/hook/default",
    post("x", {
      Authorization: `Bearer ${ADMIN}`,
      Cookie: "session=1",
      "Proxy-Authorization": "x",
      "CF-Connecting-IP": "203.0.113.1",
      "X-Forwarded-For": "203.0.113.1",
      "Sec-WebSocket-Protocol": ADMIN,
    }),
  );
  expect(seen).toHaveLength(1);
  expect(JSON.stringify(seen)).not.toContain(ADMIN);
  expect(Object.keys(seen[0]?.headers ?? {}).filter((name) => /^(authorization|cookie|proxy-|cf-|x-forwarded|sec-)/.test(name))).toEqual(
    [],
  );
});

test("[A6][X17] only channels that declare webhooks are reached; the others look like unknown routes", async () => {
  await seed();
  for (const path of ["/quiet/default", "/none/default", "/HOOK/default", "/hook", "/", "/a.b/x", "/hook%2F/x", "/constructor/x"]) {
    const response = await call(path, post("x"));
    expect(response.status, path).toBe(404);
    expect(await reasonOf(response), path).toBe("channel.unknown");
  }
  // `..` is resolved before routing; the remaining path has no route.
  expect(await reasonOf(await call("/hook/../../openapi.json", post("x")))).toBe("auth.required");
  expect(seen).toEqual([]);
});

test("[S2] a page in a browser reaches no channel", async () => {
  await seed();
  for (const headers of [{ Origin: "https://evil.example" }, { Origin: "null" }, { "Sec-Fetch-Site": "cross-site" }])
    expect(await (await call("/hook/default", post("x", headers))).json()).toMatchObject({
      reason: "auth.origin",
      hint: "Send the request from a program, not from a page.",
    });
  expect(seen).toEqual([]);
});

test("[S2] on the owner's machine a foreign Host is refused", async () => {
  await seed();
  const headers = { Host: "evil.example" };
  const response = await fetchWorker("http://evil.example/channels/hook/x", post("x", headers), { ...bindings(), ENVIRONMENT: "embedded" });
  expect(await reasonOf(response)).toBe("auth.host");
  expect(seen).toEqual([]);
});

test("[P19] other methods and a body one byte over the limit, declared or not, are refused", async () => {
  await seed();
  for (const method of ["PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"]) expect((await call("/hook/x", { method })).status, method).toBe(405);
  const big = new Uint8Array(LIMITS.webhookBytes + 1);
  expect((await call("/hook/x", post(big))).status).toBe(413);
  const untold = new ReadableStream<Uint8Array>({
    start(controller) {
      for (let at = 0; at < 17; at++) controller.enqueue(new Uint8Array(65_536));
      controller.close();
    },
  });
  expect((await call("/hook/x", post(untold))).status).toBe(413);
  expect(seen).toEqual([]);
  expect((await call("/hook/x", post(big.subarray(1)))).status).toBe(200);
  expect(seen[0]?.body).toHaveLength(LIMITS.webhookBytes);
});

test("[S18] only the body, type and status of an answer are returned; redirects and upgrades are not", async () => {
  await seed();
  answer = () =>
    new Response("<script>", {
      status: 401,
      headers: { "Content-Type": "text/html", "Set-Cookie": "a=b", "Access-Control-Allow-Origin": "*", "Retry-After": "5", "X-Other": "1" },
    });
  const response = await call("/hook/x", post("x"));
  expect(response.status).toBe(401);
  expect(await response.text()).toBe("<script>");
  expect(response.headers.get("Retry-After")).toBe("5");
  expect(response.headers.get("Content-Security-Policy")).toContain("sandbox");
  for (const name of ["Set-Cookie", "Access-Control-Allow-Origin", "X-Other"]) expect(response.headers.get(name), name).toBeNull();
  answer = () => new Response(null, { status: 302, headers: { Location: "https://evil.example" } });
  expect(await reasonOf(await call("/hook/x", post("x")))).toBe("channel.failed");
});

test("a failing channel gives a 502 without details", async () => {
  await seed();
  answer = () => {
    throw new Error("inner secret");
  };
  const response = await call("/hook/x", post("x"));
  expect(response.status).toBe(502);
  expect(await response.text()).not.toContain("secret");
});

test("a channel is asked once a minute whether it takes webhooks", async () => {
  let now = 0;
  const webhooks = new Webhooks(() => now);
  const ask = async (): Promise<number> => (await webhooks.respond(new Request(`${AT}/hook/x`), () => open)).status;
  expect([await ask(), await ask(), described]).toEqual([200, 200, 1]);
  now = 60_000;
  await ask();
  expect(described).toBe(2);
  now = 120_000;
  open = { ...open, describe: async () => Promise.reject(new Error("away")) };
  expect(await ask()).toBe(404);
});

test("[P19] the number of requests that wait for channels is bounded; the next request gets a retry error", async () => {
  const webhooks = new Webhooks(() => 0);
  let release = (): void => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  answer = async () => {
    await gate;
    return new Response("ok");
  };
  const ask = (): Promise<Response> => webhooks.respond(new Request(`${AT}/hook/x`), () => open);
  const waiting = Array.from({ length: LIMITS.webhooksAtOnce }, ask);
  const refused = await ask();
  expect([refused.status, refused.headers.get("Retry-After")]).toEqual([429, "60"]);
  release();
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(waiting.map(() => 200));
  expect((await ask()).status).toBe(200);
});

test("[F18] a slow platform takes no other channel's requests, and an unsigned or slow body ends early", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const webhooks = new Webhooks(() => 0);
    const slow = (): Promise<Response> =>
      webhooks.respond(
        new Request(`${AT}/hook/x`, { method: "POST", body: new ReadableStream({ pull: () => new Promise(() => {}) }) }),
        () => open,
      );
    const waiting = Array.from({ length: LIMITS.webhooksAtOnce }, slow);
    expect((await slow()).status).toBe(429);
    expect((await webhooks.respond(new Request(`${AT}/other/x`, { method: "POST", body: "x" }), () => open)).status).toBe(200);
    await vi.advanceTimersByTimeAsync(LIMITS.webhookBodyMs);
    expect(new Set((await Promise.all(waiting)).map(({ status }) => status))).toEqual(new Set([408]));
    expect(LIMITS.webhookBodyMs).toBeLessThan(LIMITS.webhookMs / 2);
  } finally {
    vi.useRealTimers();
  }
});

test("[F18] a request without the signature header is refused before its body is read", async () => {
  await seed();
  signatureHeader = "X-Signature";
  let read = 0;
  const body = (): ReadableStream<Uint8Array> =>
    new ReadableStream(
      {
        pull(controller) {
          read++;
          controller.enqueue(new Uint8Array(10));
          controller.close();
        },
      },
      { highWaterMark: 0 },
    );
  const webhooks = new Webhooks(() => 0);
  const ask = (headers: Record<string, string>): Promise<Response> =>
    webhooks.respond(new Request(`${AT}/hook/x`, { method: "POST", body: body(), headers }), () => open);
  const refused = await ask({});
  expect([refused.status, await reasonOf(refused), read, seen.length]).toEqual([401, "auth.required", 0, 0]);
  expect((await ask({ "x-signature": "abc" })).status).toBe(200);
  expect([read, seen.length]).toEqual([1, 1]);
});
