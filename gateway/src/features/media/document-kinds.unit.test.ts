import assert from "node:assert/strict";
import { test } from "node:test";
import { documentKind } from "./document-kinds.ts";

const of = (mimeType: string, filename?: string, type: "document" | "image" = "document") =>
  documentKind({ type, mimeType, ...(filename === undefined ? {} : { filename }) });

test("a document's kind is that of its type; its name counts only when the type says nothing", () => {
  assert.equal(of("application/pdf"), "pdf");
  assert.equal(of("application/pdf", "letter.docx"), "pdf");
  assert.equal(of("application/octet-stream", "Letter.DOCX"), "docx");
  assert.equal(of("application/zip", "table.xlsm"), "xlsx");
  for (const [type, name] of [
    ["text/csv", "a.pdf"],
    ["application/octet-stream", "a.exe"],
    ["application/octet-stream", "pdf"],
    ["application/octet-stream", "a.constructor"],
    ["constructor", "a.txt"],
  ] as const)
    assert.equal(of(type, name), undefined, `${type} ${name}`);
});
test("only documents are read as documents", () => {
  assert.equal(of("application/pdf", "a.pdf", "image"), undefined);
});
