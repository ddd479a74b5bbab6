import { reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { checkHealthResult, checkProblemDetails } from "../../../protocol/gen/validators/checks.js";
import { ADMIN, fakeSessions, fetchWorker, gateway, seed, token } from "../support/gateway.ts";

const AT = "http://gsv.test";
const auth = (bearer: string): RequestInit<IncomingRequestCfProperties> => ({ headers: { Authorization: `Bearer ${bearer}` } });
beforeEach(async () => {
  await reset();
  fakeSessions();
  await seed();
});
afterEach(() => {
  vi.restoreAllMocks();
});

async function problemOf(response: Response): Promise<{ status: number; reason: string }> {
  const body: unknown = await response.json();
  expect(response.headers.get("Content-Type")).toBe("application/problem+json");
  expect(response.headers.get("X-Content-Type-Options")).toBe("nosniff");
  expect(response.headers.get("Access-Control-Allow-Origin")).toBeNull();
  if (!checkProblemDetails(body)) throw new Error(`no problem details: ${JSON.stringify(body)}`);
  expect(body.status).toBe(response.status);
  return { status: response.status, reason: body.reason };
}

test("[S1] /health is open and reveals nothing private", async () => {
  const response = await fetchWorker(`${AT}/health`);
  expect(response.status).toBe(200);
  expect(response.headers.get("Access-Control-Allow-Origin")).toBeNull();
  expect(response.headers.get("Content-Type")).toBe("application/json");
  expect(response.headers.get("X-Content-Type-Options")).toBe("nosniff");
  expect(response.headers.get("Cache-Control")).toBe("no-store");
  const body: unknown = await response.json();
  expect(checkHealthResult(body)).toBe(true);
  expect(Object.keys(body as object).sort()).toEqual(["fingerprint", "ok", "protocol", "version"]);
});

describe("[S1][P2.4] every other route needs a token", () => {
  const paths = ["/openapi.json", "/media/x", "/", "/nope", "/run", "/jobs", "/events/1/resolve", "/account/1/send"];
  test.each(paths)("%s", async (path) => {
    expect(await problemOf(await fetchWorker(AT + path))).toEqual({ status: 401, reason: "auth.required" });
    const wrong = await fetchWorker(AT + path, auth("wrong-token"));
    expect(wrong.headers.get("WWW-Authenticate")).toContain("Bearer");
    expect(await problemOf(wrong)).toEqual({ status: 401, reason: "auth.required" });
    for (const header of [ADMIN, `Basic ${ADMIN}`, `Bearer  ${ADMIN} x`, "Bearer"])
      expect((await fetchWorker(AT + path, { headers: { Authorization: header } })).status, header).toBe(401);
    expect((await fetchWorker(`${AT}${path}?token=${ADMIN}`)).status).toBe(401);
  });

  test("tokens of nodes and channels are refused", async () => {
    for (const made of [await token("node", { nodeId: "lap" }), await token("channel", { channel: "discord" })])
      expect(await problemOf(await fetchWorker(`${AT}/openapi.json`, auth(made.token)))).toEqual({ status: 403, reason: "auth.forbidden" });
    expect((await fetchWorker(`${AT}/openapi.json`, auth((await token("client-ro")).token))).status).toBe(200);
  });

  test("[S4] too many wrong ones are answered 429", async () => {
    const seen: number[] = [];
    for (let at = 0; at < 12; at++)
      seen.push(
        (await fetchWorker(`${AT}/openapi.json`, { headers: { Authorization: "Bearer nope-nope", "CF-Connecting-IP": "203.0.113.5" } }))
          .status,
      );
    expect(seen).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429]);
  });

  test("[S2] a page of another origin is refused, with or without a token", async () => {
    expect(
      await problemOf(
        await fetchWorker(`${AT}/openapi.json`, { headers: { Authorization: `Bearer ${ADMIN}`, Origin: "https://evil.example" } }),
      ),
    ).toEqual({ status: 403, reason: "auth.origin" });
  });
});

test("[A12] with a valid token, unknown routes are 404 problems, and other methods 405 with those that are taken", async () => {
  expect(await problemOf(await fetchWorker(`${AT}/nope`, auth(ADMIN)))).toEqual({ status: 404, reason: "protocol.unknown_method" });
  for (const [method, path] of [
    ["POST", "/health"],
    ["HEAD", "/health"],
    ["PUT", "/openapi.json"],
    ["HEAD", "/openapi.json"],
    ["PUT", "/ws"],
  ] as const) {
    const response = await fetchWorker(`${AT}${path}`, { ...auth(ADMIN), method });
    expect([response.status, response.headers.get("Allow")], `${method} ${path}`).toEqual([405, "GET"]);
  }
  const page = await fetchWorker(`${AT}/ws`);
  expect([page.status, await page.json()]).toEqual([
    400,
    expect.objectContaining({
      reason: "protocol.unsupported",
      title: "This address does not take this request.",
      detail: expect.stringContaining("send a GET request with `Upgrade: websocket`"),
    }),
  ]);
});

test("/openapi.json is the document of the contract", async () => {
  const response = await fetchWorker(`${AT}/openapi.json`, auth(ADMIN));
  expect(response.headers.get("Content-Type")).toContain("application/json");
  const document = (await response.json()) as {
    openapi: string;
    paths: Record<string, Record<string, { security?: unknown; parameters?: { in: string; name: string }[] }>>;
    components: { schemas: Record<string, unknown> };
  };
  expect(document.openapi).toMatch(/^3\.1/);
  const { security, parameters } = document.paths["/hooks/{name}"]?.["post"] ?? {};
  expect(security, "no token of the gateway").toEqual([{ hookStandard: [] }, { hookGithub: [] }, { hookStripe: [] }, { hookBearer: [] }]);
  expect(parameters?.map(({ in: place, name }) => `${place} ${name}`)).toEqual([
    "path name",
    "header webhook-id",
    "header webhook-timestamp",
    "header X-GitHub-Delivery",
    "header Idempotency-Key",
  ]);
  expect(document.paths["/run"]?.["post"]).toMatchObject({ parameters: [{ in: "header", name: "Idempotency-Key" }] });
  expect(document.paths["/run"]?.["post"]?.security, "that of the document").toBeUndefined();
  expect(Object.keys(document.paths)).toEqual([
    "/health",
    "/hooks/{name}",
    "/jobs",
    "/jobs/{id}",
    "/join",
    "/media",
    "/media/{key}",
    "/openapi.json",
    "/run",
  ]);
  const schemas = [
    "AgentJob",
    "AgentReport",
    "HealthResult",
    "HookTaken",
    "JobListResult",
    "JobTaken",
    "JoinRequest",
    "JoinResult",
    "MediaUploaded",
    "ProblemDetails",
    "RunRequest",
  ];
  expect(Object.keys(document.components.schemas).sort()).toEqual(schemas);
});

describe("[X18][TH15] /media", () => {
  const KEY = "agent:main:whatsapp:dm:1%3A2/0b5c0f4e-0000-4000-8000-000000000000";
  const put = (ext: string, contentType: string, originalFilename: string): Promise<R2Object> =>
    env.STORAGE.put(`media/${KEY}.${ext}`, "<script>alert(1)</script>", {
      httpMetadata: { contentType },
      customMetadata: { originalFilename },
    });
  const get = (key: string, init: RequestInit<IncomingRequestCfProperties> = auth(ADMIN)): Promise<Response> =>
    fetchWorker(`${AT}/media/${key}`, init);

  test("is served as an attachment that no browser runs, for any file name and type", async () => {
    await put("bin", "text/html", 'x"\r\nSet-Cookie: a=b; ../../evil.html');
    const response = await get(encodeURIComponent(`${KEY}.bin`));
    expect(response.status).toBe(200);
    expect(response.headers.get("Content-Type")).toBe("application/octet-stream");
    expect(response.headers.get("X-Content-Type-Options")).toBe("nosniff");
    expect(response.headers.get("Content-Disposition")).toMatch(/^attachment; filename="evil\.html"; filename\*=UTF-8''evil\.html$/);
    expect(response.headers.get("Content-Security-Policy")).toContain("sandbox");
    expect(response.headers.get("Set-Cookie")).toBeNull();
    expect(response.headers.get("Access-Control-Allow-Origin")).toBeNull();
    expect(new TextDecoder().decode(await response.arrayBuffer())).toContain("script");
  });

  test("images keep their type, SVG does not; a raw slash in the key is the same key", async () => {
    await put("png", "image/png", "ü ber.png");
    const response = await get(`${encodeURIComponent(KEY.split("/")[0] ?? "")}/${KEY.split("/")[1]}.png`);
    expect(response.headers.get("Content-Type")).toBe("image/png");
    expect(response.headers.get("Content-Disposition")).toContain("filename*=UTF-8''%C3%BC%20ber.png");
    await put("svg", "image/svg+xml", "");
    expect((await get(encodeURIComponent(`${KEY}.svg`))).headers.get("Content-Type")).toBe("application/octet-stream");
  });

  test("serves only media", async () => {
    await env.STORAGE.put("agents/main/MEMORY.md", "private");
    await env.STORAGE.put("media/../agents/main/MEMORY.md", "private");
    for (const key of [
      "..%2Fagents%2Fmain%2FMEMORY.md",
      "%2e%2e/agents/main/MEMORY.md",
      "agents/main/MEMORY.md",
      "%2Fx/y.png",
      "x%00/y.png",
      "%",
      "",
      "a/b/c.png",
    ]) {
      const response = await get(key);
      expect(response.status, key).toBe(404);
      expect(new TextDecoder().decode(await response.arrayBuffer())).not.toContain("private");
    }
  });

  test("needs a token with read access and is read-only", async () => {
    await put("png", "image/png", "x.png");
    const key = encodeURIComponent(`${KEY}.png`);
    expect((await get(key, {})).status).toBe(401);
    expect((await get(key, auth((await token("node", { nodeId: "lap" })).token))).status).toBe(403);
    expect((await get(key, { ...auth(ADMIN), method: "DELETE" })).status).toBe(405);
  });
});

describe("[TH9] an embedded gateway answers only under its own names", () => {
  const ask = (host: string, path = "/health"): Promise<Response> =>
    fetchWorker(`http://${host}${path}`, undefined, { ENVIRONMENT: "embedded", ALLOWED_HOSTS: "box.lan" });
  test.each(["localhost:8787", "127.0.0.1:8787", "127.1.2.3", "[::1]:8787", "gsv.localhost", "box.lan:8787"])("%s", async (host) => {
    expect((await ask(host)).status).toBe(200);
  });
  test.each(["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1:8787", "box.lan.evil.example"])(
    "not %s",
    async (host) => {
      expect(await problemOf(await ask(host))).toEqual({ status: 403, reason: "auth.host" });
      expect((await ask(host, "/ws")).status).toBe(403);
      // The list of origins changes nothing here.
      expect(await (await ask(host)).json()).toMatchObject({ hint: expect.stringContaining("--behind-proxy HOST") });
    },
  );
});

test("[H2] without any token everything but /health is answered 503", async () => {
  await reset();
  // A new instance of the Worker does not know yet that a token exists; the gateway always does.
  expect(await gateway().authenticate({ token: ADMIN, address: "" })).toMatchObject({
    ok: false,
    error: { reason: "auth.not_configured" },
  });
  expect((await fetchWorker(`${AT}/health`)).status).toBe(200);
});
