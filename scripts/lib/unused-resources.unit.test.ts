import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { pathToFileURL } from "node:url";
import type Anthropic from "@anthropic-ai/sdk";
import { build } from "esbuild";
import type OpenAI from "openai";
import { ROOT } from "./root.ts";
import { emptied, unusedResources, USED } from "./unused-resources.ts";

const folder = mkdtempSync(join(tmpdir(), "gsv-clients-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** A server that answers each request with this stream of events. */
const streaming = (events: string) => (): Promise<Response> =>
  Promise.resolve(new Response(events, { headers: { "content-type": "text/event-stream" } }));

async function bundled<T>(name: string, contents: string): Promise<T> {
  const outfile = join(folder, `${name}.mjs`);
  await build({
    stdin: { contents, resolveDir: ROOT },
    bundle: true,
    format: "esm",
    conditions: ["workerd", "worker", "browser"],
    external: ["node:*"],
    plugins: [unusedResources],
    logOverride: { "import-is-undefined": "error" },
    outfile,
  });
  return (await import(pathToFileURL(outfile).href)) as T;
}

describe("clients of model vendors in a bundle", () => {
  it("OpenAI's streams an answer of both of its wires, and has no member of a resource that no wire uses", async () => {
    const { client: Client } = await bundled<{ client: typeof OpenAI }>("openai", 'export { default as client } from "openai";');
    const client = new Client({
      apiKey: "k",
      dangerouslyAllowBrowser: true,
      fetch: streaming('data: {"choices":[{"delta":{"content":"hello"}}]}\n\ndata: [DONE]\n\n'),
    });
    const chunks = await client.chat.completions.create({ model: "m", messages: [], stream: true });
    const texts = [];
    for await (const chunk of chunks) texts.push(chunk.choices[0]?.delta.content);
    assert.deepEqual(texts, ["hello"]);
    const responses = new Client({
      apiKey: "k",
      dangerouslyAllowBrowser: true,
      fetch: streaming('event: response.completed\ndata: {"type":"response.completed"}\n\n'),
    });
    const events = [];
    for await (const event of await responses.responses.create({ model: "m", input: "hi", stream: true })) events.push(event.type);
    assert.deepEqual(events, ["response.completed"]);
    assert.equal(client.files.create, undefined);
    assert.equal(client.admin.organization, undefined);
  });

  it("Anthropic's streams an answer, and has no member of a resource that no wire uses", async () => {
    const { client: Client } = await bundled<{ client: typeof Anthropic }>(
      "anthropic",
      'export { default as client } from "@anthropic-ai/sdk";',
    );
    const client = new Client({
      apiKey: "k",
      dangerouslyAllowBrowser: true,
      fetch: streaming('event: message_stop\ndata: {"type":"message_stop"}\n\n'),
    });
    const events = [];
    for await (const event of await client.beta.messages.create({ model: "m", max_tokens: 1, messages: [], stream: true }))
      events.push(event.type);
    assert.deepEqual(events, ["message_stop"]);
    assert.equal(client.messages.create, undefined);
    assert.equal(client.beta.agents.create, undefined);
  });

  it("each module that is kept is an import of its module", () => {
    for (const [path, used] of Object.entries(USED)) {
      const text = readFileSync(join(ROOT, "node_modules", path), "utf8");
      for (const one of used) assert(text.includes(` from "${one}";`), `${path} does not import ${one}`);
    }
  });

  it("a class in the place of a resource has its name and no members", () => {
    assert.equal(
      emptied(
        "import x from 'y';\nexport class Files extends APIResource {\n  create() {}\n}\nexport class Parts extends APIResource {}\nFiles.Parts = Parts;",
      ),
      "export class Files {}\nexport class Parts {}",
    );
  });
});
