import assert from "node:assert/strict";
import { test } from "node:test";
import { about, documentText, type NamedFile, unreadableNote, voiceNote } from "./words.ts";

const file: NamedFile = { type: "document", mimeType: "text/csv", r2Key: "media/x/y" };
test("a file is told by what is known of it", () => {
  assert.equal(about(file), '{"type":"text/csv"}');
  assert.equal(
    about({ ...file, id: "media:3", filename: "a.csv", sizeBytes: 0 }),
    '{"id":"media:3","name":"a.csv","type":"text/csv","bytes":0}',
  );
});
test("[P10] a file that could not be read says why, or that it may be available next time", () => {
  assert.match(unreadableNote(file), /may be available next time/);
  assert.match(unreadableNote(file, "It is encrypted."), /It is encrypted\. You can still send the file itself/);
});
test("a voice message has its transcript", () => {
  assert.match(voiceNote(file), /It was not transcribed\./);
  assert.match(voiceNote({ ...file, transcript: "hi" }), /Transcript: "hi"/);
});
test("[P19] a document that was cut says where the rest is", () => {
  assert.doesNotMatch(documentText(file, "a;b", undefined), /Only the first/);
  assert.match(documentText(file, "a;b", 3), /Only the first 3 bytes are shown\. Ask the user/);
  assert.match(
    documentText({ ...file, id: "media:3" }, "a;b", 3),
    /Only the first 3 bytes are shown\. The rest: gsv__ReadFile with path "media:3"/,
  );
});
