/** [LM13] [LM14] The contract of embedding services: one suite over the built-in table, an OpenAI-compatible server, and Workers AI. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { type FakeEmbeddings, startFakeEmbeddings } from "../../../test/fakes/fake-embeddings.ts";
import { answerFor, meaningOf } from "../../../test/fakes/meaning.ts";
import { table } from "../../test/features/search/recall-measure.ts";
import { cosine, DIMENSIONS } from "../features/search/static-embeddings.ts";
import type { Embeddings, Vector } from "../ports/embeddings.ts";
import { builtInEmbeddings } from "./built-in.ts";
import { type ChosenEmbeddings, chosenEmbeddings, embeddingsProblem, targetOf } from "./choose.ts";
import { openAiEmbeddings } from "./openai.ts";
import { embeddingService } from "./service.ts";
import { workersAiEmbeddings } from "./workers-ai.ts";

const KEY = "sk-a-secret-key-of-the-owner";
const fetched = (input: string, init: RequestInit): Promise<Response> => fetch(input, init);
const chosen = (settings: Parameters<typeof chosenEmbeddings>[0]): ChosenEmbeddings => {
  const choice = chosenEmbeddings(settings);
  assert.ok(choice.ok && choice.chosen !== undefined, JSON.stringify(choice));
  return choice.chosen;
};
const reasonOf = async (given: ReturnType<Embeddings["embed"]>): Promise<string> => {
  const got = await given;
  if (got.ok) return "ok";
  assert.doesNotMatch(got.error.message, /words of the server|sk-a-secret|private text/);
  return got.error.reason;
};
const near = (one: Vector | undefined, two: Vector | undefined): number => (one && two ? cosine(one, two.bytes, two.scale) : Number.NaN);

let server: FakeEmbeddings;
before(async () => {
  server = await startFakeEmbeddings();
});
after(() => server.close());
const openai = (more: object = {}): ChosenEmbeddings => chosen({ provider: "openai", baseUrl: server.url, ...more });
/** Workers AI as its binding answers: a shape, and the vectors in order. */
const fakeAi = (asked: string[][] = []) => ({
  run: async (_model: string, { text }: { readonly text: readonly string[] }): Promise<unknown> => {
    asked.push([...text]);
    return { shape: [text.length, 768], data: text.map((one) => meaningOf(one, 768)), pooling: "mean" };
  },
});
const services: readonly (readonly [string, () => Embeddings])[] = [
  ["built-in", () => builtInEmbeddings(table(), DIMENSIONS)],
  ["openai", () => openAiEmbeddings(openai(), KEY, fetched)],
  ["workers-ai", () => workersAiEmbeddings(chosen({ provider: "workers-ai" }), fakeAi())],
];
for (const [name, make] of services)
  describe(`[LM13] [LM14] ${name}`, () => {
    test("gives one vector of length 1 for each text, in order, of the size that it says", async () => {
      const service = make();
      const texts = ["The car is red.", "A physician called.", "The automobile is red."];
      const got = await service.embed(texts);
      assert.ok(got.ok);
      const { vectors } = got.value;
      assert.equal(vectors.length, 3);
      for (const vector of vectors) {
        assert.equal(vector?.bytes.length, service.of.dimensions);
        assert.ok(Math.abs(near(vector, vector) - 1) < 1e-6);
      }
      assert.ok(near(vectors[0], vectors[2]) > near(vectors[0], vectors[1]), "texts of one meaning are nearer");
      const again = await service.embed(texts.toReversed());
      assert.ok(again.ok && near(again.value.vectors[2], vectors[0]) > 0.999, "in the order of the texts");
    });
    test("takes texts of other scripts, of half a surrogate, and of the largest size", async () => {
      const got = await make().embed(["東京 🗼", "\ud800 x", `word ${"é".repeat(4_000)}`]);
      assert.ok(got.ok && got.value.vectors.length === 3);
    });
  });

describe("[LM14] an OpenAI-compatible server", () => {
  const embed = (more: object = {}, texts = ["a private text", "another"]) => openAiEmbeddings(openai(more), KEY, fetched).embed(texts);
  test("gets the key, the model and the texts, and dimensions only when they are set for a model that can", async () => {
    await embed();
    assert.deepEqual(
      { ...server.requests.at(-1) },
      {
        path: "/v1/embeddings",
        authorization: `Bearer ${KEY}`,
        model: "text-embedding-3-small",
        input: ["a private text", "another"],
        dimensions: undefined,
      },
    );
    const got = await embed({ dimensions: 256 });
    assert.equal(server.requests.at(-1)?.dimensions, 256);
    assert.ok(got.ok && got.value.vectors[0]?.bytes.length === 256 && got.value.tokens === 10, "the server counts tokens");
    await openAiEmbeddings(openai(), undefined, fetched).embed(["x"]);
    assert.equal(server.requests.at(-1)?.authorization, undefined);
  });
  const answers: readonly (readonly [string, unknown])[] = [
    ["a vector of another size", answerFor(["a", "b"], 1535)],
    ["a missing vector", { data: [{ index: 0, embedding: meaningOf("a", 1536) }] }],
    ["one vector twice", { data: [0, 0].map((index) => ({ index, embedding: meaningOf("a", 1536) })) }],
    ["a vector too many", answerFor(["a", "b", "c"], 1536)],
    ["a vector of zeros", { data: [0, 1].map((index) => ({ index, embedding: new Array(1536).fill(0) })) }],
    ["null in a vector, as JSON writes NaN", { data: [0, 1].map((index) => ({ index, embedding: new Array(1536).fill(Number.NaN) })) }],
    ["texts in a vector", { data: [0, 1].map((index) => ({ index, embedding: new Array(1536).fill("0.1") })) }],
    ["a vector in base64", { data: [0, 1].map((index) => ({ index, embedding: "AACAPw==" })) }],
    ["no vectors", { error: "words of the server" }],
    ["no object", null],
  ];
  for (const [what, answer] of answers)
    test(`${what} is embeddings.invalid_answer`, async () => {
      server.enqueue({ body: JSON.stringify(answer) });
      assert.equal(await reasonOf(embed()), "embeddings.invalid_answer");
    });
  test("an answer that is no JSON, or longer than it may be, is not used", async () => {
    server.enqueue({ body: "words of the server" }, { body: `{"data": [${" ".repeat(400_000)}]}` });
    assert.equal(await reasonOf(embed()), "embeddings.invalid_answer");
    assert.equal(await reasonOf(embed()), "embeddings.invalid_answer");
  });
  const statuses: readonly (readonly [number, string])[] = [
    [401, "embeddings.refused"],
    [403, "embeddings.refused"],
    [404, "embeddings.refused"],
    [302, "embeddings.refused"],
    [400, "embeddings.text_refused"],
    [413, "embeddings.text_refused"],
    [429, "embeddings.unavailable"],
    [500, "embeddings.unavailable"],
    [503, "embeddings.unavailable"],
  ];
  for (const [status, reason] of statuses)
    test(`the status ${status} is ${reason}`, async () => {
      server.enqueue({ status, body: JSON.stringify({ error: { message: "words of the server" } }) });
      assert.equal(await reasonOf(embed()), reason);
    });
  test("a server that is not there, that does not answer in time, and an aborted call are embeddings.unavailable", async () => {
    const gone = chosen({ provider: "openai", baseUrl: "http://127.0.0.1:1/v1" });
    assert.equal(await reasonOf(openAiEmbeddings(gone, KEY, fetched).embed(["x"])), "embeddings.unavailable");
    server.held = true;
    assert.equal(await reasonOf(openAiEmbeddings(openai(), KEY, fetched, 20).embed(["x"])), "embeddings.unavailable");
    assert.equal(await reasonOf(openAiEmbeddings(openai(), KEY, fetched).embed(["x"], AbortSignal.abort())), "embeddings.unavailable");
    server.release();
  });
});

describe("[LM18] what a call without vectors has used", () => {
  const used = async (given: ReturnType<Embeddings["embed"]>): Promise<number | "unknown" | undefined> => {
    const got = await given;
    return got.ok ? -1 : got.used;
  };
  const two = () => openAiEmbeddings(openai(), KEY, fetched).embed(["a", "b"]);
  test("a service that refuses or cannot be reached has counted nothing", async () => {
    for (const status of [400, 401, 429, 500, 503]) {
      server.enqueue({ status, body: "{}" });
      assert.equal(await used(two()), undefined, `${status}`);
    }
    const gone = chosen({ provider: "openai", baseUrl: "http://127.0.0.1:1/v1" });
    assert.equal(await used(openAiEmbeddings(gone, KEY, fetched).embed(["x"])), undefined);
    assert.equal(await used(openAiEmbeddings(openai(), KEY, fetched).embed(["x"], AbortSignal.abort())), undefined, "nothing was sent");
    const broken = workersAiEmbeddings(chosen({ provider: "workers-ai" }), { run: () => Promise.reject(new Error("3040: No capacity")) });
    assert.equal(await used(broken.embed(["x"])), undefined);
  });
  test("a call without an answer in time may be counted", async () => {
    server.held = true;
    assert.equal(await used(openAiEmbeddings(openai(), KEY, fetched, 20).embed(["x"])), "unknown");
    server.release();
    const silent = { run: () => new Promise<never>(() => undefined) };
    assert.equal(await used(workersAiEmbeddings(chosen({ provider: "workers-ai" }), silent, 5).embed(["x"])), "unknown");
  });
  test("an answer that breaks off may be counted; a refusal that breaks off is not", async () => {
    server.enqueue({ body: '{"data": [', breaksOff: true });
    const service = openAiEmbeddings(openai(), KEY, fetched);
    const got = await service.embed(["x"]);
    assert.ok(!got.ok && got.error.reason === "embeddings.unavailable");
    assert.equal(got.used, "unknown");
    server.enqueue({ status: 503, body: '{"error": ', breaksOff: true });
    assert.equal(await used(two()), undefined);
  });
  test("an answer that is not valid is counted, as the service says or as estimated", async () => {
    server.enqueue({ body: JSON.stringify({ data: [], usage: { total_tokens: 11 } }) }, { body: "no JSON" });
    assert.equal(await used(two()), 11);
    assert.ok(Number(await used(two())) > 0);
    const empty = workersAiEmbeddings(chosen({ provider: "workers-ai" }), { run: () => Promise.resolve({ data: [] }) });
    assert.ok(Number(await used(empty.embed(["x"]))) > 0);
  });
});

describe("[LM14] Workers AI", () => {
  test("[LM15] an exception is told apart by its documented code", async () => {
    for (const [message, reason] of [
      ["InferenceUpstreamError: 3006: Request too large", "embeddings.text_refused"],
      ["AiError: 5004: Invalid data", "embeddings.text_refused"],
      ["5007: No such model", "embeddings.refused"],
      ["3036: Daily limit", "embeddings.unavailable"],
      ["9999: words of the server", "embeddings.unavailable"],
      ["words of the server", "embeddings.unavailable"],
    ] as const) {
      const broken = workersAiEmbeddings(settings, { run: () => Promise.reject(new Error(message)) });
      assert.equal(await reasonOf(broken.embed(["x"])), reason, message);
    }
  });
  const settings = chosen({ provider: "workers-ai" });
  const answering = (answer: unknown): Embeddings => workersAiEmbeddings(settings, { run: () => Promise.resolve(answer) });
  test("answers without the right vectors are not used, and what it throws is not told", async () => {
    for (const answer of [
      null,
      {},
      { data: "x" },
      { data: [] },
      { data: [meaningOf("a", 767)] },
      { data: [new Array(768).fill(Number.NaN)] },
    ])
      assert.equal(await reasonOf(answering(answer).embed(["x"])), "embeddings.invalid_answer", JSON.stringify(answer)?.slice(0, 40));
    const broken = workersAiEmbeddings(settings, { run: () => Promise.reject(new Error("words of the server")) });
    assert.equal(await reasonOf(broken.embed(["x"])), "embeddings.unavailable");
  });
  test("one that never answers is given up, at once when the call is aborted", async () => {
    const silent = { run: () => new Promise<never>(() => undefined) };
    assert.equal(await reasonOf(workersAiEmbeddings(settings, silent, 5).embed(["x"])), "embeddings.unavailable");
    assert.equal(await reasonOf(workersAiEmbeddings(settings, silent).embed(["x"], AbortSignal.abort())), "embeddings.unavailable");
    const late = new AbortController();
    const asked = workersAiEmbeddings(settings, silent).embed(["x"], late.signal);
    late.abort();
    assert.equal(await reasonOf(asked), "embeddings.unavailable");
  });
});

describe("[LM13] the settings", () => {
  test("choose provider, model, size and price; another server is another provider", () => {
    assert.deepEqual(chosenEmbeddings({}), { ok: true, chosen: undefined });
    assert.deepEqual(chosenEmbeddings({ provider: "built-in", model: "x" }), { ok: true, chosen: undefined });
    assert.equal(targetOf(undefined), "");
    assert.equal(targetOf({ provider: "openai" }), "openai/text-embedding-3-small/1536");
    assert.equal(targetOf({ provider: "openai", dimensions: 512 }), "openai/text-embedding-3-small/512");
    assert.equal(targetOf({ provider: "workers-ai" }), "workers-ai/@cf/baai/bge-base-en-v1.5/768");
    const own = chosen({ provider: "openai", baseUrl: "http://127.0.0.1:11434/", model: "nomic", dimensions: 768 });
    assert.deepEqual(
      [own.of.provider, own.url, own.price, own.needsKey, own.shortened],
      ["openai http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1/embeddings", undefined, false, false],
    );
    assert.deepEqual([chosen({ provider: "openai" }).price, chosen({ provider: "openai", price: 0 }).price], [0.02, 0]);
  });
  test("the guide's order of settings for a server of one's own never chooses OpenAI in between", () => {
    const guide = readFileSync(`${import.meta.dirname}/../../../docs/agents.md`, "utf8");
    const line = guide.split("\n").find((text) => text.startsWith("- Your own server")) ?? "";
    const values = new Map(Object.entries({ provider: "openai", baseUrl: server.url, dimensions: 768, model: "nomic" }));
    const order = [...new Set([...line.matchAll(/memory\.embeddings\.(\w+)/g)].map(([, name = ""]) => name))];
    assert.deepEqual(order.toSorted(), [...values.keys()].toSorted());
    const settings: Record<string, unknown> = {};
    const targets = order.map((name) => {
      settings[name] = values.get(name);
      const choice = chosenEmbeddings(settings);
      assert.ok(choice.ok, `${name} is refused`);
      return choice.chosen?.of.provider;
    });
    assert.deepEqual(targets, [undefined, undefined, undefined, `openai ${server.url}`]);
  });
  test("what cannot work is refused with what to set", () => {
    for (const [settings, said] of [
      [{ provider: "openai", model: "nomic" }, /Set memory\.embeddings\.dimensions first/],
      [{ provider: "openai", model: "text-embedding-ada-002", dimensions: 512 }, /have 1536 numbers/],
      [{ provider: "openai", dimensions: 2048 }, /have 1536 numbers/],
      [{ provider: "workers-ai", dimensions: 512 }, /have 768 numbers/],
      [{ provider: "openai", baseUrl: "http://user:pass@127.0.0.1/v1" }, /baseUrl is not a valid address/],
      [{ provider: "openai", baseUrl: "http://127.0.0.1/v1?x=1" }, /baseUrl is not a valid address/],
    ] as const)
      assert.match(embeddingsProblem(settings) ?? "", said);
  });
  test("without the binding or the key there is no service", () => {
    const ports = { ai: undefined, fetch: fetched, key: () => undefined };
    const none = embeddingService(chosen({ provider: "workers-ai" }), ports);
    assert.ok(!none.ok && /only on Cloudflare/.test(none.error.message));
    const keyless = embeddingService(chosen({ provider: "openai" }), ports);
    assert.ok(!keyless.ok && /gsv config set apiKeys\.openai -/.test(keyless.error.hint ?? ""));
    assert.ok(embeddingService(openai(), ports).ok, "a server of one's own may need none");
  });
});
