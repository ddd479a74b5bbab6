/** [X18][TH15] POST /media: access, limits and targets, and that a browser never runs an uploaded file. */
import { reset } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { checkMediaUploaded } from "../../../../protocol/gen/validators/checks.js";
import type { MediaUploaded } from "../../../../protocol/gen/types.ts";
import { uuidFor } from "../../../src/storage/media-names.ts";
import { ADMIN, client, fakeSessions, fetchWorker, gateway, last, node, seed, token } from "../../support/gateway.ts";

const AT = "http://gsv.test/media";
const PNG = Uint8Array.from("\x89PNG\r\n\x1a\npicture", (sign) => sign.charCodeAt(0));
const MAIN = "agent:main:main";

let sessions: ReturnType<typeof fakeSessions>;
beforeEach(async () => {
  await reset();
  sessions = fakeSessions();
  await seed();
});
afterEach(() => {
  vi.restoreAllMocks();
});

interface Send {
  readonly query?: Readonly<Record<string, string>>;
  readonly bearer?: string;
  readonly type?: string;
  readonly body?: Uint8Array | string | ReadableStream;
  /** The Content-Length header; the size of the body by default. */
  readonly size?: number;
}
const send = ({ query = { sessionKey: "main" }, bearer = ADMIN, type = "image/png", body = PNG, size }: Send = {}): Promise<Response> => {
  const length = size ?? (body instanceof ReadableStream ? undefined : new Blob([body]).size);
  return fetchWorker(`${AT}?${new URLSearchParams(query)}`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${bearer}`,
      "Content-Type": type,
      ...(length === undefined ? {} : { "Content-Length": String(length) }),
    },
    body,
  });
};
const stream = (end: (controller: ReadableStreamDefaultController) => void): ReadableStream =>
  new ReadableStream({
    start(controller) {
      controller.enqueue(PNG);
      end(controller);
    },
  });
async function taken(response: Response): Promise<MediaUploaded> {
  const body: unknown = await response.json();
  if (response.status !== 200 || !checkMediaUploaded(body)) throw new Error(`${response.status} ${JSON.stringify(body)}`);
  return body;
}
async function refused(response: Response): Promise<string> {
  expect(response.headers.get("Content-Type")).toBe("application/problem+json");
  const body = (await response.json()) as { reason: string };
  return `${response.status} ${body.reason}`;
}
const sha256 = async (bytes: Uint8Array<ArrayBuffer>): Promise<string> =>
  Array.from(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)), (byte) => byte.toString(16).padStart(2, "0")).join("");

describe("[P5.6] a client's file", () => {
  test("is stored under the session's canonical key with the layout's metadata, and the answer has its type", async () => {
    const answer = await taken(await send({ query: { sessionKey: "main", filename: "../a b.png" } }));
    expect(answer).toMatchObject({ mimeType: "image/png", sizeBytes: PNG.length, sha256: await sha256(PNG), filename: "a b.png" });
    expect(answer.r2Key).toMatch(/^media\/agent:main:main\/[0-9a-f-]{36}\.png$/);
    const object = await env.STORAGE.get(answer.r2Key);
    expect(object?.httpMetadata?.contentType).toBe("image/png");
    expect(Object.keys(object?.customMetadata ?? {}).sort()).toEqual(["originalFilename", "sessionKey", "uploadedAt"]);
    expect(object?.customMetadata?.["sessionKey"]).toBe(MAIN);
    expect(new Uint8Array((await object?.arrayBuffer()) ?? new ArrayBuffer())).toEqual(PNG);
    const back = await fetchWorker(`${AT}/${encodeURIComponent(answer.r2Key.slice("media/".length))}`, {
      headers: { Authorization: `Bearer ${ADMIN}` },
    });
    expect(back.headers.get("X-Content-Type-Options")).toBe("nosniff");
    expect(back.headers.get("Content-Disposition")).toContain('attachment; filename="a b.png"');
    expect(new Uint8Array(await back.arrayBuffer())).toEqual(PNG);
  });
  test("[P1] a repeated upload with the same id is stored once, and the first file stays", async () => {
    const query = { sessionKey: "main", id: crypto.randomUUID() };
    const one = await taken(await send({ query }));
    const two = await taken(await send({ query }));
    const other = await taken(await send({ query, body: Uint8Array.from([...PNG, 1, 2, 3]) }));
    expect([two, other]).toEqual([one, one]);
    expect((await env.STORAGE.list({ prefix: `media/${MAIN}/` })).objects).toHaveLength(1);
    expect((await taken(await send())).r2Key).not.toBe(one.r2Key);
  });
  test("gets its type from its first bytes", async () => {
    expect((await taken(await send({ type: "text/html" }))).mimeType).toBe("image/png");
    expect((await taken(await send({ body: "<script>" }))).r2Key).toMatch(/\.bin$/);
    expect((await taken(await send({ type: "audio/ogg; codecs=opus", body: "OggS..." }))).r2Key).toMatch(/\.ogg$/);
  });
  test("may have at most 25 MiB", async () => {
    const most = new Uint8Array(26_214_400);
    most.set(PNG);
    expect((await taken(await send({ body: most }))).sizeBytes).toBe(26_214_400);
    expect(await refused(await send({ body: new Uint8Array(26_214_401) }))).toBe("413 file.too_large");
    expect((await env.STORAGE.list({ prefix: `media/${MAIN}/` })).objects).toHaveLength(1);
  });
  test("must have a size and must not be empty", async () => {
    expect(await refused(await send({ body: stream((controller) => controller.close()) }))).toBe("411 protocol.invalid_params");
    expect(await refused(await send({ body: new Uint8Array() }))).toBe("400 protocol.invalid_params");
  });
  test("is not stored when it breaks off or has another length than declared", async () => {
    const gone = stream((controller) => controller.error(new Error("gone")));
    for (const [body, size] of [
      [gone, 1_000_000],
      [PNG, PNG.length + 1],
      [PNG, PNG.length - 1],
    ] as const)
      expect(await refused(await send({ body, size }))).toBe("400 protocol.invalid_params");
    expect((await env.STORAGE.list({ prefix: `media/${MAIN}/` })).objects).toEqual([]);
  });
});

describe("[S1][S3] who may upload", () => {
  test("needs a token with write access", async () => {
    expect((await fetchWorker(AT, { method: "POST", body: PNG })).status).toBe(401);
    expect(await refused(await send({ bearer: "nope-nope" }))).toBe("401 auth.required");
    expect(await refused(await send({ bearer: (await token("client-ro")).token }))).toBe("403 auth.forbidden");
    expect(await refused(await send({ bearer: (await token("channel", { channel: "discord" })).token }))).toBe("403 auth.forbidden");
    expect(await refused(await send({ bearer: (await token("node", { nodeId: "lap" })).token }))).toBe("403 auth.forbidden");
    expect((await taken(await send({ bearer: (await token("client")).token }))).mimeType).toBe("image/png");
  });
  test("the query names exactly one valid target", async () => {
    for (const query of [{}, { sessionKey: "main", callId: "a/r1/1/0" }, { sessionKey: "main", id: "../x" }])
      expect(await refused(await send({ query }))).toBe("400 protocol.invalid_params");
    expect(await refused(await send({ query: { sessionKey: "a/../b" } }))).toBe("400 session.bad_key");
    expect(await refused(await send({ query: { sessionKey: "agent:unknown:main" } }))).toMatch(/agent\.unknown$/);
    expect(await refused(await fetchWorker(`${AT}?sessionKey=main`, { headers: { Authorization: `Bearer ${ADMIN}` } }))).toBe(
      "405 protocol.unsupported",
    );
  });
  test("120 files a minute, then a while later", async () => {
    const { token: bearer } = await token("client");
    const statuses = await Promise.all(Array.from({ length: 125 }, async () => (await send({ bearer })).status));
    expect(statuses.filter((status) => status === 429)).toHaveLength(5);
    expect(statuses.filter((status) => status === 200)).toHaveLength(120);
  });
});

describe("[P4.3] a machine's image for its call", () => {
  /** The ref of a session with messages. */
  const made = async (): Promise<string> => {
    const peer = await client();
    await peer.ok("chat.send", { sessionKey: "main", message: "hi" });
    return last<{ identity: { ref: string } }>(sessions.of("send")).identity.ref;
  };
  /** The machine is connected and was given the call. */
  const given = async (nodeId: string, callId: string): Promise<string> => {
    const { token: bearer } = await token("node", { nodeId });
    await node(nodeId, bearer);
    expect(await gateway().dispatchTool({ callId, sessionKey: MAIN, nodeId, tool: "Read", args: {}, timeoutMs: 60_000 })).toBe("sent");
    return bearer;
  };
  test("[F21] for a call that the machine was never given is refused", async () => {
    const ref = await made();
    const bearer = await given("lap", `${ref}/r1/1/0`);
    expect((await taken(await send({ query: { callId: `${ref}/r1/1/0` }, bearer }))).mimeType).toBe("image/png");
    expect(await refused(await send({ query: { callId: `${ref}/r1/1/1` }, bearer }))).toBe("404 media.not_found");
    const { token: box } = await token("node", { nodeId: "box" });
    await node("box", box);
    expect(await refused(await send({ query: { callId: `${ref}/r1/1/0` }, bearer: box }))).toBe("404 media.not_found");
  });
  test("[X18] is stored under a name of this machine and this call", async () => {
    const callId = `${await made()}/r1/1/0`;
    const lap = await given("lap", callId);
    const box = await given("box", callId);
    const mine = await taken(await send({ query: { callId }, bearer: lap }));
    const theirs = await taken(await send({ query: { callId }, bearer: box }));
    expect(mine.r2Key).toBe(`media/${MAIN}/${await uuidFor(MAIN, { kind: "call", callId, nodeId: "lap" })}.png`);
    expect(theirs.r2Key).not.toBe(mine.r2Key);
  });
  test("must be an image of at most 10 MiB and belong to a possible call", async () => {
    const ref = await made();
    const bearer = await given("lap", `${ref}/r1/1/0`);
    expect(await refused(await send({ query: { callId: `${ref}/r1/1/0` }, bearer, body: "text" }))).toBe("415 media.unsupported");
    expect(await refused(await send({ query: { callId: `${ref}/r1/1/0` }, bearer, body: new Uint8Array(10_485_761) }))).toBe(
      "413 file.too_large",
    );
    for (const callId of ["aaaaaaaaaa/r1/1/0", `${ref}/r1/1`, `${ref}/../x/y`, "gw/abc/x"])
      expect(await refused(await send({ query: { callId }, bearer }))).toBe("404 media.not_found");
    expect(await refused(await send({ query: { callId: `${ref}/r1/1/0` }, bearer: (await token("client")).token }))).toBe(
      "403 auth.forbidden",
    );
  });
});
