/** [LM15] [LM16] [LM17] [LM18] Memories get the vectors of a service: after failures, kills at every step, and a change of the model. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { EmbeddingsConfig } from "../../../../protocol/gen/types.ts";
import { meaningOf } from "../../../../test/fakes/meaning.ts";
import { memory } from "../../../test/features/memory/rows-contract.ts";
import { database } from "../../../test/features/search/recall-measure.ts";
import { sqliteRows } from "../../../test/support/rows.ts";
import { shortened } from "../../embeddings/answer.ts";
import { type ChosenEmbeddings, targetOf } from "../../embeddings/choose.ts";
import type { Embedded } from "../../ports/embeddings.ts";
import { failure, type Result } from "../../ports/result.ts";
import type { OwnCall } from "../../ports/spend.ts";
import { D1Memory } from "./d1-store.ts";
import { EMBEDDING_MIGRATIONS, EmbeddingStateStore } from "./embedding-state-store.ts";
import { EmbeddingPass } from "./embedding-pass.ts";

const SCOPE = { tenantId: "default", agentId: "main" };
const SMALL: EmbeddingsConfig = { provider: "openai" };
const LARGE: EmbeddingsConfig = { provider: "openai", model: "text-embedding-3-large" };
class Killed extends Error {}

function world() {
  const db = database();
  EMBEDDING_MIGRATIONS[0]?.up(db.sql);
  // The platform's `exec` gives a cursor.
  const exec = (query: string, ...values: (string | number | null)[]) => {
    const [value] = db.sql.exec(query, ...values).toArray();
    return { next: () => (value === undefined ? { done: true } : { done: false, value }) };
  };
  const state = new EmbeddingStateStore({ sql: { exec } } as never);
  const given = {
    settings: SMALL as EmbeddingsConfig,
    now: 1_000,
    /** Statements of the database until the gateway is killed. */
    killAfter: Number.POSITIVE_INFINITY,
    answer: (texts: readonly string[], { of }: ChosenEmbeddings): Result<Embedded> => ({
      ok: true,
      value: { vectors: texts.map((text) => shortened(meaningOf(text, of.dimensions))), tokens: texts.length },
    }),
    full: new Set<string>(),
  };
  const asked: string[][] = [];
  const calls: { call: OwnCall; settled: number | undefined }[] = [];
  const rowsDb = sqliteRows(() => {
    if (--given.killAfter <= 0) throw new Killed();
  });
  const rows = new D1Memory(
    rowsDb,
    () => 1,
    () => undefined,
  );
  /** As after a start of the gateway: nothing but the tables is known. */
  const pass = (): EmbeddingPass =>
    new EmbeddingPass({
      rows: new D1Memory(
        rowsDb,
        () => 1,
        () => undefined,
      ),
      state,
      settings: () => given.settings,
      service: (chosen) => ({
        ok: true,
        value: {
          of: chosen.of,
          embed: async (texts) => {
            asked.push([...texts]);
            await Promise.resolve();
            return given.answer(texts, chosen);
          },
        },
      }),
      ownCall: (call) => {
        if (given.full.has(call.agentId)) return { ok: false, error: { reason: "budget.agent", message: "The limit is reached." } };
        const noted: (typeof calls)[number] = { call, settled: undefined };
        calls.push(noted);
        const settle = ({ input }: { readonly input: number }): void => {
          noted.settled = input;
        };
        return { ok: true, settle };
      },
      now: () => given.now,
      scrub: (text) => text.replaceAll("hunter2hunter2", "[hidden]"),
      log: { warn: () => undefined } as never,
    });
  const store = async (text: string, agentId = "main", superseded?: string): Promise<string> => {
    const row = memory(text, superseded === undefined ? {} : { supersedes: superseded });
    state.announce(given.now);
    assert.ok((await rows.store({ ...SCOPE, agentId }, row, true)).ok);
    return row.id;
  };
  const isDue = (): boolean =>
    state.read().model !== targetOf(given.settings) || (state.read().dueAt ?? Number.POSITIVE_INFINITY) <= given.now;
  /** Runs steps as the alarm does. Returns their number. */
  const settle = async (most = 100): Promise<number> => {
    let steps = 0;
    for (; isDue(); steps++) {
      assert.ok(steps < most, "it does not end");
      await pass().run();
    }
    return steps;
  };
  const stateOf = async (id: string, agentId = "main") => {
    const got = await rows.get({ ...SCOPE, agentId }, [id]);
    assert.ok(got.ok);
    const embedding = got.value.get(id)?.embedding;
    return embedding === undefined ? undefined : `${embedding.state} ${embedding.of?.model ?? ""}`.trim();
  };
  return { given, state, rows, pass, store, settle, stateOf, asked, calls };
}
const DONE = "done text-embedding-3-small";

describe("[LM15] memories of an embedding service", () => {
  it("wait until the next step, and are embedded 64 at a time", async () => {
    const { store, settle, stateOf, asked } = world();
    const ids: string[] = [];
    for (let number = 0; number < 150; number++) ids.push(await store(`fact ${number}`));
    assert.equal(await stateOf(ids[0] ?? ""), "pending");
    await settle();
    for (const id of ids) assert.equal(await stateOf(id), DONE);
    assert.deepEqual(
      asked.map(({ length }) => length),
      [64, 64, 22],
    );
  });
  it("stay when the service fails, wait with growing pauses, and the attempts end after twenty", async () => {
    const { given, state, store, settle, stateOf, asked, pass } = world();
    given.answer = () => failure("embeddings.unavailable", "The embedding service did not answer.");
    const id = await store("a fact");
    const pauses: number[] = [];
    for (let step = 0; step < 20; step++) {
      await settle();
      const { dueAt, problem } = state.read();
      assert.equal(problem, "The embedding service did not answer.");
      pauses.push(dueAt === undefined ? -1 : (dueAt - given.now) / 1_000);
      given.now = dueAt ?? given.now;
    }
    assert.deepEqual(pauses.slice(0, 4), [10, 20, 40, 80]);
    assert.deepEqual(pauses.slice(-3), [3_600, 3_600, -1]);
    assert.equal(asked.length, 20);
    assert.equal(await stateOf(id), "pending");
    assert.deepEqual(await pass().waiting(), {
      model: "openai/text-embedding-3-small",
      waiting: 1,
      refused: 0,
      problem: "The embedding service did not answer.",
    });
    // The next memory begins again.
    const works = world().given.answer;
    given.answer = works;
    const other = await store("another fact");
    await settle();
    assert.deepEqual([await stateOf(id), await stateOf(other), state.read().problem], [DONE, DONE, undefined]);
    assert.equal(await pass().waiting(), undefined);
  });
  it("a new memory does not shorten a pause", async () => {
    const { given, state, store, settle, asked } = world();
    given.answer = () => failure("embeddings.unavailable", "No.");
    await store("one");
    await settle();
    const { dueAt } = state.read();
    await store("two");
    assert.equal(state.read().dueAt, dueAt);
    await settle();
    assert.equal(asked.length, 1);
  });
  it("one text that the service does not take is marked, and all others get their vectors", async () => {
    const { given, store, settle, stateOf, pass } = world();
    const { answer } = given;
    given.answer = (texts, chosen) => (texts.includes("bad") ? failure("embeddings.text_refused", "No.") : answer(texts, chosen));
    const ids = [await store("one"), await store("two"), await store("bad"), await store("three"), await store("four")];
    await settle();
    assert.deepEqual(await Promise.all(ids.map((id) => stateOf(id))), [DONE, DONE, "refused text-embedding-3-small", DONE, DONE]);
    assert.deepEqual(await pass().waiting(), { model: "openai/text-embedding-3-small", waiting: 0, refused: 1 });
  });
  it("a service that takes no text at all marks none", async () => {
    const { given, state, store, settle, stateOf } = world();
    given.answer = () => failure("embeddings.text_refused", "No.");
    const ids = [await store("one"), await store("two")];
    await settle();
    assert.deepEqual(await Promise.all(ids.map((id) => stateOf(id))), ["pending", "pending"]);
    assert.match(state.read().problem ?? "", /refuses every text/);
  });
  it("what is announced while a step looks for rows is not missed", async () => {
    const { given, state, store, settle, stateOf, pass } = world();
    await settle();
    state.announce(given.now);
    const running = pass().run();
    const id = await store("late");
    await running;
    await settle();
    assert.equal(await stateOf(id), DONE);
  });
  it("stored secrets are masked in what is sent", async () => {
    const { store, settle, asked } = world();
    await store("the password is hunter2hunter2");
    await settle();
    assert.deepEqual(asked, [["the password is [hidden]"]]);
  });
});

describe("[LM15] [LM17] kills", () => {
  it("a kill at each statement of the database loses nothing: the next start goes on", async () => {
    for (let killAfter = 1; killAfter < 30; killAfter++) {
      const { given, state, store, settle, stateOf } = world();
      const ids = [await store("one"), await store("two", "main"), await store("three", "other")];
      given.killAfter = killAfter;
      for (let tries = 0; tries < 10; tries++) {
        await settle().catch(() => undefined);
        if (given.killAfter > 0) break;
        given.killAfter = Number.POSITIVE_INFINITY;
        given.now = state.read().dueAt ?? given.now;
      }
      given.killAfter = Number.POSITIVE_INFINITY;
      assert.deepEqual(
        [await stateOf(ids[0] ?? ""), await stateOf(ids[1] ?? ""), await stateOf(ids[2] ?? "", "other")],
        [DONE, DONE, DONE],
        `killed at ${killAfter}`,
      );
    }
  });
  it("a kill between the service's answer and the row asks again", async () => {
    const { given, store, settle, stateOf, asked, pass } = world();
    const id = await store("one");
    const { answer } = given;
    given.answer = () => {
      throw new Killed();
    };
    await assert.rejects(pass().run(), Killed);
    given.answer = answer;
    await settle();
    assert.deepEqual([await stateOf(id), asked.length], [DONE, 2]);
  });
  it("another model embeds everything again, also when it is killed in between, and back again what has changed", async () => {
    const { given, store, settle, stateOf, asked, pass } = world();
    const ids: string[] = [];
    for (let number = 0; number < 100; number++) ids.push(await store(`fact ${number}`));
    await settle();
    asked.length = 0;
    given.settings = LARGE;
    await pass().run();
    assert.deepEqual(
      [await stateOf(ids[0] ?? ""), await stateOf(ids[99] ?? "")],
      ["done text-embedding-3-large", "pending text-embedding-3-small"],
    );
    // A new start finishes it, and embeds nothing twice.
    await settle();
    for (const id of ids) assert.equal(await stateOf(id), "done text-embedding-3-large");
    assert.deepEqual(
      asked.map(({ length }) => length),
      [64, 36],
    );
    given.settings = { provider: "built-in" };
    await settle();
    const later = await store("later");
    given.settings = LARGE;
    await settle();
    assert.equal(await stateOf(later), "done text-embedding-3-large");
    assert.deepEqual(asked.slice(2), [["later"]], "only what is new");
  });
  it("an answer that comes after the change of the model is dropped", async () => {
    const { given, store, settle, stateOf, pass } = world();
    const id = await store("one");
    const { answer } = given;
    given.answer = (texts, chosen) => {
      given.settings = LARGE;
      return answer(texts, chosen);
    };
    await pass().run();
    assert.equal(await stateOf(id), "pending");
    given.answer = answer;
    await settle();
    assert.equal(await stateOf(id), "done text-embedding-3-large");
  });
});

describe("[LM16] [LM18] forgetting and money", () => {
  it("a row that is forgotten while its vector is made leaves nothing", async () => {
    const { given, rows, store, settle } = world();
    const [gone, kept] = [await store("gone"), await store("kept")];
    const { answer } = given;
    let removal: Promise<unknown> | undefined;
    given.answer = (texts, chosen) => {
      removal = rows.remove(SCOPE, [gone]);
      return answer(texts, chosen);
    };
    await settle();
    await removal;
    const changes = await rows.changes(SCOPE, 0, 10);
    assert.ok(changes.ok);
    assert.deepEqual(
      changes.value.filter(({ vector }) => vector !== undefined).map(({ id }) => id),
      [kept],
    );
    assert.equal(changes.value.find(({ id }) => id === gone)?.memory, undefined);
  });
  it("a superseded row is not sent", async () => {
    const { store, settle, asked } = world();
    const older = await store("older");
    await store("newer", "main", older);
    await settle();
    assert.deepEqual(asked, [["newer"]]);
  });
  it("each request is set aside before it and settled after it; an unanswered one stays counted", async () => {
    const { given, store, settle, calls } = world();
    await store("four");
    await settle();
    const [first] = calls;
    assert.deepEqual(first?.call.need, { costUsd: (4 * 0.02) / 1e6, tokens: 0 }, "a token is a byte at least");
    assert.deepEqual([first?.call.agentId, first?.call.model, first?.settled], ["main", "openai/text-embedding-3-small", 1]);
    given.answer = () => failure("embeddings.unavailable", "No.");
    await store("five");
    await settle();
    assert.equal(calls[1]?.settled, undefined);
    given.answer = () => failure("embeddings.refused", "No.");
    given.now = 1e9;
    await settle();
    assert.equal(calls[2]?.settled, 0);
  });
  it("an agent whose limit is used up sends nothing and holds no other back", async () => {
    const { given, state, store, settle, stateOf, asked } = world();
    given.full.add("main");
    const [mine, other] = [await store("mine"), await store("other's", "other")];
    await settle();
    assert.deepEqual([await stateOf(mine), await stateOf(other, "other")], ["pending", DONE]);
    assert.deepEqual(asked, [["other's"]]);
    assert.equal(state.read().problem, "The limit is reached.");
  });
  it("[LM13] a question is sent only when a memory has a vector of the same model", async () => {
    const { given, store, settle, asked, pass } = world();
    const signal = AbortSignal.timeout(60_000);
    const question = async () => pass().question("main", "where is it?", signal);
    assert.deepEqual(await question(), { ok: true, value: undefined });
    await store("one");
    await settle();
    asked.length = 0;
    const got = await question();
    assert.ok(got.ok && got.value?.model === "openai/text-embedding-3-small/1536");
    assert.deepEqual(await pass().question("other", "where is it?", signal), { ok: true, value: undefined });
    given.settings = LARGE;
    assert.deepEqual(await question(), { ok: true, value: undefined }, "no vector of this model yet");
    assert.deepEqual(asked, [["where is it?"]]);
  });
});
