import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { OutboundFile, OutboundPart } from "../../kit/src/platform.ts";
import { mapOutbound, MAX_FILE_BYTES, oggSeconds } from "./map-outbound.ts";
import { messageIdOf } from "./message-id.ts";

const ANN = "15550002222@s.whatsapp.net";
const part = (more: Partial<OutboundPart> = {}): OutboundPart => ({
  partId: "d/0",
  nonce: "N",
  peer: { kind: "dm", id: ANN },
  text: "*hi*",
  attempt: 1,
  firstTriedAt: 0,
  ...more,
});
const file = (more: Partial<OutboundFile>): OutboundFile => ({
  r2Key: "media/s/x",
  mimeType: "image/png",
  kind: "image",
  voice: false,
  ...more,
});
const bytes = new Uint8Array([1, 2, 3]);

/** An Ogg page with this position, in 48 kHz samples. */
function oggPage(samples: bigint): Uint8Array {
  const page = Buffer.alloc(28);
  page.write("OggS");
  page.writeBigUInt64LE(samples, 6);
  return page;
}

test("[P9] a text without a link preview", () => {
  assert.deepEqual(mapOutbound(part(), {}), { kind: "send", jid: ANN, content: { text: "*hi*", linkPreview: null } });
});
test("[P9] an answer quotes the stored message, and stands alone without one", () => {
  const answer = part({ replyToId: "A1", peer: { kind: "group", id: "120@g.us" } });
  const mapped = mapOutbound(answer, { quotable: { text: "q", fromMe: false, participant: "9000000@lid" } });
  assert(mapped.kind === "send");
  assert.deepEqual(mapped.quoted, {
    key: { remoteJid: "120@g.us", id: "A1", fromMe: false, participant: "9000000@lid" },
    message: { conversation: "q" },
  });
  const alone = mapOutbound(answer, {});
  assert(alone.kind === "send" && alone.quoted === undefined);
});
test("[P9] an edit names the message", () => {
  const mapped = mapOutbound(part({ replaces: "B1" }), {});
  assert(mapped.kind === "send" && "edit" in mapped.content);
  assert.deepEqual(mapped.content.edit, { remoteJid: ANN, id: "B1", fromMe: true });
});
for (const [what, given, expected] of [
  ["a picture", file({}), { mimetype: "image/png", caption: "*hi*", image: bytes, jpegThumbnail: "" }],
  ["a film", file({ kind: "video", mimeType: "video/mp4" }), { mimetype: "video/mp4", caption: "*hi*", video: bytes, jpegThumbnail: "" }],
  [
    "a document with its name",
    file({ kind: "document", mimeType: "application/pdf", filename: "a.pdf" }),
    { mimetype: "application/pdf", caption: "*hi*", document: bytes, fileName: "a.pdf" },
  ],
  [
    "a document without one",
    file({ kind: "document", mimeType: "application/pdf" }),
    { mimetype: "application/pdf", caption: "*hi*", document: bytes, fileName: "file" },
  ],
] as const) {
  test(`[P9] ${what}`, () => {
    const mapped = mapOutbound(part({ file: given }), { bytes });
    assert(mapped.kind === "send");
    assert.deepEqual(mapped.content, expected);
    assert.equal(mapped.before, undefined);
  });
}
test("[P9] a recording is sent as a voice note after its text", () => {
  const recording = Buffer.concat([oggPage(0n), oggPage(144_000n), Buffer.alloc(50)]);
  const mapped = mapOutbound(part({ file: file({ kind: "audio", mimeType: "audio/ogg", voice: true }) }), { bytes: recording });
  assert(mapped.kind === "send" && "audio" in mapped.content);
  assert.deepEqual([mapped.content.ptt, mapped.content.seconds, mapped.content.mimetype], [true, 3, "audio/ogg; codecs=opus"]);
  assert.equal(mapped.content.waveform?.length, 64);
  assert.equal(mapped.before, "*hi*");
  const music = mapOutbound(part({ text: "", file: file({ kind: "audio", mimeType: "audio/mpeg" }) }), { bytes });
  assert(music.kind === "send" && "audio" in music.content);
  assert.deepEqual([music.content.ptt, music.content.seconds, music.before], [false, 0, undefined]);
});
test("[P9] a recording that is no voice note keeps its type, and another type stays as it is", () => {
  const typeOf = (mimeType: string, voice: boolean): unknown => {
    const mapped = mapOutbound(part({ file: file({ kind: "audio", mimeType, voice }) }), { bytes });
    assert(mapped.kind === "send" && "audio" in mapped.content);
    return mapped.content.mimetype;
  };
  assert.deepEqual(
    [typeOf("audio/ogg", false), typeOf("audio/ogg", true), typeOf("audio/mpeg", true)],
    ["audio/ogg", "audio/ogg; codecs=opus", "audio/mpeg"],
  );
});
test("[P9] a file of the largest size is sent", () => {
  assert.equal(mapOutbound(part({ file: file({}) }), { bytes: new Uint8Array(MAX_FILE_BYTES) }).kind, "send");
});
for (const [what, refused, given] of [
  ["a peer that is no number", part({ peer: { kind: "dm", id: "#general" } }), {}],
  ["a group as a person", part({ peer: { kind: "dm", id: "120@g.us" } }), {}],
  ["a person as a group", part({ peer: { kind: "group", id: ANN } }), {}],
  ["a channel", part({ peer: { kind: "channel", id: "120@newsletter" } }), {}],
  ["nothing", part({ text: "" }), {}],
  ["a file that is gone", part({ file: file({}) }), {}],
  ["a file that is too large", part({ file: file({}) }), { bytes: new Uint8Array(MAX_FILE_BYTES + 1) }],
] as const) {
  test(`[P9] ${what} is refused`, () => assert.equal(mapOutbound(refused, given).kind, "refused"));
}
test("[P9] the message id derives from the nonce", () => {
  assert.match(messageIdOf("abc"), /^3EB0[0-9A-F]{36}$/);
  assert.equal(messageIdOf("abc"), messageIdOf("abc"));
  fc.assert(fc.property(fc.string(), fc.string(), (left, right) => (left === right) === (messageIdOf(left) === messageIdOf(right))));
});
test("[P19] any bytes give a duration or none", () => {
  assert.equal(oggSeconds(oggPage(0xffff_ffff_ffff_ffffn)), undefined);
  assert.equal(oggSeconds(new Uint8Array()), undefined);
  assert.equal(oggSeconds(oggPage(48_000n * 86_400n)), 86_400);
  assert.equal(oggSeconds(oggPage(48_000n * 86_400n + 1n)), undefined);
  assert.equal(oggSeconds(oggPage(96_000n).subarray(0, 27)), 2);
  assert.equal(oggSeconds(oggPage(96_000n).subarray(0, 26)), undefined);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (tail) => {
      const seconds = oggSeconds(Buffer.concat([oggPage(48_000n), tail]));
      assert(seconds === undefined || seconds >= 1);
    }),
  );
});
