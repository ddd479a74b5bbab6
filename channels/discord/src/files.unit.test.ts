import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { FileRefused } from "../../kit/src/inbox.ts";
import type { InboundFile, OutboundFile, OutboundPart, PlatformHost } from "../../kit/src/platform.ts";
import { FileGone, fetchAttachment, loadFile } from "./files.ts";

const bytes = new TextEncoder().encode("hello");
const store = (sizeBytes: number | undefined): Pick<PlatformHost, "readFile"> => ({
  readFile: async (_part, maxBytes) =>
    sizeBytes === undefined ? null : { sizeBytes, ...(sizeBytes > maxBytes ? {} : { bytes: bytes.slice() }) },
});
const part = (file?: Partial<OutboundFile>, text = ""): OutboundPart => ({
  partId: "d/0",
  nonce: "n",
  peer: { kind: "dm", id: "1" },
  text,
  attempt: 1,
  firstTriedAt: 0,
  ...(file ? { file: { r2Key: "k", mimeType: "text/plain", kind: "document", voice: false, filename: "a.txt", ...file } } : {}),
});

test("[P7] a file is sent with its message", async () => {
  const loaded = await loadFile(store(5), part({}));
  assert.deepEqual(loaded.files, [{ name: "a.txt", data: bytes, contentType: "text/plain" }]);
  assert.equal(loaded.filename, "a.txt");
  assert.deepEqual((await loadFile(store(5), part())).files, []);
});
test("[P7] a file that is too large becomes a note of bounded length", async () => {
  const loaded = await loadFile(store(10 * 1024 * 1024 + 1), part({}, "x".repeat(2_000)));
  assert.deepEqual([loaded.files, loaded.filename], [[], undefined]);
  assert.match(loaded.part.text, /"a.txt" has 10.0 MB/);
  assert.ok(loaded.part.text.length <= 2_000);
});
test("[P7] a deleted file fails for good", async () => {
  await assert.rejects(loadFile(store(undefined), part({})), FileGone);
});

let origin = "";
const server = createServer((request, response) => {
  const status = Number(/\d+/.exec(request.url ?? "")?.[0] ?? 200);
  response.writeHead(status, status === 302 ? { location: "http://169.254.169.254/latest/meta-data" } : { "content-length": 5 });
  response.end(status === 302 ? "" : "hello");
});
before(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});
const file = (url: unknown): InboundFile => ({ index: 0, mimeType: "text/plain", kind: "document", reference: { url } });

test("[S18] a file is fetched from an allowed host", async () => {
  const { body, sizeBytes } = await fetchAttachment(file(`${origin}/200`), origin);
  assert.equal(await new Response(body).text(), "hello");
  assert.equal(sizeBytes, 5);
});
test("[S18][X18] no other host is contacted, and no redirect is followed", async () => {
  await assert.rejects(fetchAttachment(file(`${origin}/200`), undefined), FileRefused);
  await assert.rejects(fetchAttachment(file("http://169.254.169.254/"), origin), FileRefused);
  await assert.rejects(fetchAttachment(file(undefined), origin), FileRefused);
  await assert.rejects(fetchAttachment({ ...file(""), reference: null }, origin), FileRefused);
  await assert.rejects(fetchAttachment(file(`${origin}/302`), origin), FileRefused);
});
test("[P7] a missing file fails for good, a server error is retried", async () => {
  await assert.rejects(fetchAttachment(file(`${origin}/404`), origin), FileRefused);
  await assert.rejects(fetchAttachment(file(`${origin}/503`), origin), (error) => !(error instanceof FileRefused));
});
