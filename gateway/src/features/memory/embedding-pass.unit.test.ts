/** [LM15] [LM16] [LM17] [LM18] Memories get the vectors of a service: after failures, kills at every step, and a change of the model. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { counted } from "../../embeddings/answer.ts";
import { failure } from "../../ports/result.ts";
import { SCOPE, LARGE, Killed, world, DONE } from "../../../test/features/memory/embedding-world.ts";

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
  it("a memory that is added during the last attempt begins again", async () => {
    const { given, state, store, settle, asked } = world();
    given.answer = () => failure("embeddings.unavailable", "No.");
    await store("one");
    for (let step = 0; step < 19; step++) {
      await settle();
      given.now = state.read().dueAt ?? given.now;
    }
    let stored: Promise<string> | undefined;
    given.answer = () => {
      stored ??= store("two");
      return failure("embeddings.unavailable", "No.");
    };
    await settle();
    await stored;
    const { dueAt = 0, tries } = state.read();
    assert.deepEqual([asked.length, tries, dueAt - given.now], [21, 1, 10_000]);
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
  it("one step makes at most 16 requests, also when every second text is refused", async () => {
    const { given, store, settle, stateOf, pass, asked } = world();
    const { answer } = given;
    given.answer = (texts, chosen) =>
      texts.some((text) => text.startsWith("bad")) ? failure("embeddings.text_refused", "No.") : answer(texts, chosen);
    const ids: string[] = [];
    for (let number = 0; number < 64; number++) ids.push(await store(number % 2 === 0 ? `bad ${number}` : `good ${number}`));
    await pass().run();
    assert.ok(asked.length <= 16, `${asked.length} requests`);
    await settle();
    for (const [number, id] of ids.entries()) assert.equal(await stateOf(id), number % 2 === 0 ? "refused text-embedding-3-small" : DONE);
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
    given.answer = () => counted(failure("embeddings.unavailable", "No."), "unknown");
    await store("five");
    await settle();
    assert.equal(calls[1]?.settled, undefined);
    given.answer = () => failure("embeddings.refused", "No.");
    given.now = 1e9;
    await settle();
    assert.equal(calls[2]?.settled, 0);
    given.answer = () => counted(failure("embeddings.invalid_answer", "No."), 7);
    given.now = 2e9;
    await settle();
    assert.equal(calls[3]?.settled, 7, "the service counted the call");
  });
  it("a service that is down for all twenty attempts uses up no limit", async () => {
    const { given, state, store, settle, calls } = world();
    given.answer = () => failure("embeddings.unavailable", "The embedding service could not be reached.");
    await store("a fact");
    for (let dueAt: number | undefined = given.now; dueAt !== undefined; dueAt = state.read().dueAt) {
      given.now = dueAt;
      await settle();
    }
    assert.equal(calls.length, 20);
    assert.ok(calls.every(({ settled }) => settled === 0));
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
  it("a limit that stays used up is asked for every hour without end, and is no failed attempt", async () => {
    const { given, state, store, settle, stateOf } = world();
    given.full.add("main");
    const id = await store("mine");
    for (let hour = 0; hour < 30; hour++) {
      await settle();
      assert.deepEqual([state.read().tries, (state.read().dueAt ?? 0) - given.now], [0, 3_600_000]);
      await store("another");
      assert.equal((state.read().dueAt ?? 0) - given.now, 3_600_000, "a new memory does not shorten it");
      given.now = state.read().dueAt ?? 0;
    }
    given.full.clear();
    await settle();
    assert.equal(await stateOf(id), DONE);
  });
  it("after a failure a change of the settings begins again at once, also after the last attempt", async () => {
    const { given, state, store, settle, stateOf } = world();
    const { answer } = given;
    given.answer = () => failure("embeddings.refused", "The embedding service refused the key.");
    const id = await store("a fact");
    for (let step = 0; step < 20; step++) {
      await settle();
      given.now = state.read().dueAt ?? given.now;
    }
    assert.equal(state.read().dueAt, undefined);
    given.answer = answer;
    await settle();
    assert.equal(await stateOf(id), "pending");
    given.version++;
    await settle();
    assert.equal(await stateOf(id), DONE);
  });
  it("an agent is reached behind any number of agents whose limits are used up", async () => {
    const { given, store, stateOf, pass, isDue, state } = world();
    for (let number = 0; number < 40; number++) {
      given.full.add(`agent${number}`);
      await store("waits", `agent${number}`);
    }
    const id = await store("the last one", "last");
    const one = pass();
    for (let steps = 0; isDue(); steps++) {
      assert.ok(steps < 10, "it does not end");
      await one.run();
    }
    assert.equal(await stateOf(id, "last"), DONE);
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
