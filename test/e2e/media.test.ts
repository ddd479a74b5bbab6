/** Files end to end: the program, the gateway's HTTP, the bucket, the model's wire, a node's Read (P5.6, P4.3). */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type FakeTranscription, startFakeTranscription } from "../fakes/fake-transcription.ts";
import { type FakeModel, Machine, startFakeModel, transcript, until } from "./support.ts";

/** Starts like a PNG; the rest differs from byte to byte, so that every lost byte is noticed. */
const png = (size: number): Buffer => {
  const bytes = Buffer.from(Uint8Array.from({ length: size }, (_, at) => (at * 31 + (at >> 8)) & 255));
  bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return bytes;
};

describe("[P5.6] files", () => {
  const machine = new Machine();
  let fake: FakeModel;
  let speech: FakeTranscription;
  const lastAsked = (): string => JSON.stringify(fake.requests.at(-1)?.body ?? {});
  before(async () => {
    fake = await startFakeModel();
    speech = await startFakeTranscription();
    await machine.up();
    await machine.useModel(fake, "anthropic");
    await machine.ok("config", "set", "transcription.baseUrl", speech.url);
    await machine.ok("config", "set", "transcription.language", "en");
  });
  after(async () => {
    await machine.end();
    await fake.close();
    await speech.close();
  });

  it("an image that is attached reaches the model byte for byte", async () => {
    const picture = png(1_500_000);
    writeFileSync(join(machine.folder, "a picture.png"), picture);
    writeFileSync(join(machine.folder, "notes.md"), "# the notes");
    const { code, stdout, stderr } = await machine.gsv(["chat", "say seen", "--attach", "a picture.png", "--attach", "notes.md"]);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /seen/);
    const asked = lastAsked();
    assert.ok(asked.includes(picture.toString("base64")), "the image is not in the request");
    assert.match(asked, /"media_type":"image\/png"/);
    assert.match(asked, /the notes/);
  });

  it("a recording is transcribed once, on the real wire", async () => {
    const sound = Buffer.concat([Buffer.from("OggS"), Buffer.alloc(50_000, 7)]);
    writeFileSync(join(machine.folder, "voice.ogg"), sound);
    await machine.ok("chat", "--attach", "voice.ogg", "say listened");
    await machine.ok("chat", "say again");
    assert.equal(speech.heard.length, 1);
    const [heard] = speech.heard;
    assert.deepEqual(Buffer.from(heard?.bytes ?? []), sound);
    assert.equal(heard?.path, "/v1/audio/transcriptions");
    assert.deepEqual(
      [heard?.filename, heard?.contentType, heard?.fields["model"], heard?.fields["language"]],
      ["audio.ogg", "audio/ogg", "whisper-1", "en"],
    );
    assert.match(lastAsked(), /heard 50004 bytes/);
  });

  it("[P4.3] an image on a node that is too large for a frame is uploaded and shown to the model", async () => {
    const node = await machine.node("laptop");
    const picture = png(2_000_000);
    writeFileSync(node.file("big.png"), picture);
    await machine.ok("chat", "-s", "agent:main:cli:dm:big", 'call laptop__Read {"path":"big.png"}');
    assert.ok(lastAsked().includes(picture.toString("base64")), "the image is not in the request");
  });

  it("[TH15] 25 MiB pass through the embedded bucket; [P3.2] a reset deletes files, and uploads that no message names", async () => {
    const sessionKey = "agent:main:cli:dm:big";
    const at = machine.url.replace(/^ws/, "http").replace(/\/ws$/, "");
    const headers = { authorization: `Bearer ${machine.token}`, "content-type": "application/octet-stream" };
    const body = png(26_214_400);
    const answer = await fetch(`${at}/media?${new URLSearchParams({ sessionKey })}`, { method: "POST", headers, body });
    const orphan = (await answer.json()) as { r2Key: string; sha256: string };
    assert.equal(orphan.sha256, createHash("sha256").update(body).digest("hex"));
    const client = await machine.client();
    const named = JSON.stringify(await transcript(client, sessionKey)).match(/media\/[^"]+\.png/)?.[0] ?? "";
    const look = (key: string): Promise<Response> => fetch(`${at}/${key.replace(/%/g, "%25")}`, { headers });
    const there = await look(orphan.r2Key);
    assert.ok(Buffer.from(await there.arrayBuffer()).equals(body));
    assert.equal(there.headers.get("x-content-type-options"), "nosniff");
    assert.deepEqual(Buffer.from(await (await look(named)).arrayBuffer()), png(2_000_000));
    await client.call("session.reset", { sessionKey });
    for (const key of [orphan.r2Key, named]) await until(`${key} to go`, async () => (await look(key)).status === 404);
    client.close();
  });

  it("a message with an invalid file is refused before anything is sent", async () => {
    const asked = fake.requests.length;
    const { code, stderr } = await machine.gsv(["chat", "--attach", "missing.png", "hello"]);
    assert.equal(code, 2);
    assert.match(stderr, /missing\.png cannot be read/);
    assert.equal(fake.requests.length, asked);
  });
});
