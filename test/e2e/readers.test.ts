/** Readers of documents and images in the embedded gateway: modules that are loaded with the first file, in isolates of their own. */
import assert from "node:assert/strict";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { imageFacts } from "../../gateway/src/features/media/readers/image-facts.ts";
import { bmp, docx, pdf } from "../../gateway/test/support/documents.ts";
import { type FakeModel, Machine, startFakeModel } from "./support.ts";

describe("[F64][M10] readers are loaded with the first file that needs them", () => {
  const machine = new Machine();
  let fake: FakeModel;
  const shown = async (name: string, bytes: Uint8Array, session: string): Promise<string> => {
    writeFileSync(join(machine.folder, name), bytes);
    await machine.ok("chat", "-s", `agent:main:cli:dm:${session}`, "--attach", name, "say seen");
    return JSON.stringify(fake.requests.at(-1)?.body ?? {});
  };
  before(async () => {
    fake = await startFakeModel();
    await machine.up();
    await machine.useModel(fake, "anthropic");
  });
  after(async () => {
    await machine.end();
    await fake.close();
  });

  it("the start needs none of them, and a missing one says nothing about the file", async () => {
    const module = join(machine.home, "gateway", "modules", "pdf.mjs");
    renameSync(module, `${module}.away`);
    assert.match(await shown("a.pdf", pdf(["The invoice number is 4711."]), "late"), /it may be available next time/);
    renameSync(`${module}.away`, module);
    await machine.ok("chat", "-s", "agent:main:cli:dm:late", "say again");
    assert.match(JSON.stringify(fake.requests.at(-1)?.body), /\[Page 1 of 1\]\\nThe invoice number is 4711\./);
  });
  it("documents become text, and pictures are scaled", async () => {
    assert.match(await shown("minutes.docx", docx(["Minutes", "Anna brings the cake."]), "docx"), /# Minutes\\nAnna brings the cake\./);
    const data = /"media_type":"image\/jpeg","data":"([^"]+)"/.exec(await shown("big.bmp", bmp(2_600, 1_300), "bmp"))?.[1];
    assert.ok(data, "no image reached the model");
    assert.deepEqual(imageFacts(Buffer.from(data, "base64")), { width: 2_000, height: 1_000, orientation: 1 });
  });
  it("what a reader says of a file passes the border of its module", async () => {
    assert.match(await shown("scan.pdf", pdf([""]), "scan"), /It has 1 pages without any text: they are probably scanned images\./);
    assert.match(await shown("no.pdf", Buffer.from("%PDF-1.4 and no more"), "no"), /It is damaged, or it is not a PDF\./);
  });
});
