/** [LM13] [LM15] [LM16] [LM17] Memories with an embedding service, with the built program and kill -9. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type FakeEmbeddings, startFakeEmbeddings } from "../fakes/fake-embeddings.ts";
import { Machine } from "./support.ts";
import { until } from "./waiting.ts";

const KEY = "sk-embedding-key-of-the-owner";
interface Listed {
  readonly memories: readonly { readonly id: string; readonly text: string; readonly embedding?: string }[];
  readonly embeddings?: { readonly waiting: number; readonly problem?: string };
}

describe("[LM13] [LM15] [LM16] [LM17] memories with an embedding service", () => {
  const machine = new Machine();
  let service: FakeEmbeddings;
  const listed = async (): Promise<Listed> => JSON.parse(await machine.ok("memory", "list", "--json")) as Listed;
  const found = async (...words: string[]): Promise<string | undefined> => {
    const answer = JSON.parse(await machine.ok("memory", "search", ...words, "--json")) as { memories: { memory: { text: string } }[] };
    return answer.memories[0]?.memory.text;
  };
  const settled = () => until("every memory has its vector", async () => (await listed()).embeddings === undefined, undefined, 100);
  const sentTo = (model: string): readonly string[] => service.requests.filter((one) => one.model === model).flatMap(({ input }) => input);

  before(async () => {
    service = await startFakeEmbeddings();
    await machine.up();
    const set = await machine.gsv(["config", "set", "apiKeys.openai", "-"], { input: KEY });
    assert.equal(set.code, 0, set.stderr);
    await machine.ok("memory", "add", "My vehicle wartburg zq.");
    assert.equal(service.requests.length, 0);
    await machine.ok("config", "set", "memory.embeddings.baseUrl", service.url);
    await machine.ok("config", "set", "memory.embeddings.provider", "openai");
  });
  after(async () => {
    await machine.end();
    await service.close();
  });

  it("what was there before gets its vector, too, and is found by its meaning", async () => {
    await settled();
    assert.deepEqual(sentTo("text-embedding-3-small"), ["My vehicle wartburg zq."]);
    assert.equal(service.requests[0]?.authorization, `Bearer ${KEY}`);
    assert.equal(await found("automobile", "parked"), "My vehicle wartburg zq.");
    assert.deepEqual(service.requests.at(-1)?.input, ["automobile parked"]);
    assert.doesNotMatch(await machine.ok("config", "get"), /sk-embedding/);
  });
  it("while the service is down a memory waits, is found by its words, and the list says why; a kill forgets none of it", async () => {
    service.status = 503;
    await machine.ok("memory", "add", "The zebra eats grass.");
    await until("the first attempt", async () => (await listed()).embeddings?.problem !== undefined);
    const shown = await machine.gsv(["memory", "list"]);
    assert.match(shown.stderr, /1 memory waits for vectors of openai .*status 503.*Next attempt/s);
    await machine.killWorkerd();
    assert.equal(await found("zebra", "grass"), "The zebra eats grass.");
    assert.equal((await listed()).embeddings?.waiting, 1);
    service.status = 200;
    await settled();
    assert.ok(sentTo("text-embedding-3-small").includes("The zebra eats grass."));
  });
  it("a kill in the middle of a request of another model: the next start makes all vectors again", async () => {
    service.held = true;
    await machine.ok("config", "set", "memory.embeddings.model", "text-embedding-3-large");
    await until("the request", () => sentTo("text-embedding-3-large").length === 2);
    await machine.killWorkerd();
    service.release();
    await settled();
    assert.deepEqual(
      (await listed()).memories.map(({ embedding }) => embedding),
      ["done", "done"],
    );
    assert.equal(await found("automobile", "parked"), "My vehicle wartburg zq.");
    assert.equal(service.requests.at(-1)?.model, "text-embedding-3-large");
  });
  it("a memory that is forgotten while its vector is made does not come back", async () => {
    service.held = true;
    await machine.ok("memory", "add", "The xylophone is in the attic.");
    await until("the request", () => sentTo("text-embedding-3-large").includes("The xylophone is in the attic."));
    const row = (await listed()).memories.find(({ text }) => text.includes("xylophone"));
    await machine.ok("memory", "forget", "--yes", row?.id ?? "");
    service.release();
    await settled();
    assert.deepEqual(
      (await listed()).memories.map(({ text }) => text),
      ["The zebra eats grass.", "My vehicle wartburg zq."],
    );
    assert.notEqual(await found("xylophone", "attic"), "The xylophone is in the attic.");
  });
});
