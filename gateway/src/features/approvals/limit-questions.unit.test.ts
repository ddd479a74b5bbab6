import assert from "node:assert/strict";
import { test } from "node:test";
import type { ApprovalEntry } from "../../../../protocol/gen/types.ts";
import type { Config } from "../../kernel/config/store.ts";
import { LimitQuestions } from "./limit-questions.ts";

const entry = (sessionKey: string, code: string, limit?: true): ApprovalEntry =>
  ({ sessionKey, code, ...(limit ? { limit } : {}) }) as unknown as ApprovalEntry;
const MIDNIGHT = Date.parse("2026-11-22T23:00:00Z");
function stageOf(stored: readonly ApprovalEntry[] = []) {
  const asked: string[] = [];
  const stage = { version: "1", at: Date.parse("2026-11-22T22:50:00Z"), away: false, asked, looking: () => {} };
  const questions = new LimitQuestions(
    { limits: () => stored },
    {
      contextVersion: () => stage.version,
      now: () => stage.at,
      config: { effective: () => ({ userTimezone: "Europe/Berlin" }) } as unknown as Config,
      ask: async (key) => {
        asked.push(key);
        stage.looking();
        if (stage.away) throw new Error("the session is away");
        return undefined as never;
      },
    },
  );
  return { ...stage, stage, questions };
}

test("[SP10] the session of a question about a limit looks once, and again after each change of what a run may use", async () => {
  const { stage, asked, questions } = stageOf();
  questions.reported("a", [entry("a", "ACDEF")]);
  assert.equal(questions.next(), undefined);
  questions.reported("a", [entry("a", "ACDEF"), entry("a", "K7Q2A", true)]);
  assert.equal(questions.next(), stage.at);
  await questions.run();
  assert.deepEqual([questions.next(), asked], [MIDNIGHT, ["a"]]);
  stage.version = "2";
  assert.equal(questions.next(), stage.at);
  await questions.run();
  assert.deepEqual([questions.next(), asked], [MIDNIGHT, ["a", "a"]]);
  stage.version = "3";
  questions.reported("a", []);
  assert.equal(questions.next(), undefined);
});
test("[SP10] the session of a question about a limit looks again when the day of the owner's time zone ends", async () => {
  const { stage, asked, questions } = stageOf();
  questions.reported("a", [entry("a", "K7Q2A", true)]);
  await questions.run();
  stage.at = MIDNIGHT - 1;
  await questions.run();
  assert.deepEqual([questions.next(), asked], [MIDNIGHT, ["a"]]);
  stage.at = MIDNIGHT;
  assert.equal(questions.next(), MIDNIGHT);
  await questions.run();
  assert.deepEqual([questions.next(), asked], [MIDNIGHT + 24 * 3_600_000, ["a", "a"]]);
});
test("[SP10] a session that is away is told again, and so is each one after a restart", async () => {
  const { stage, asked, questions } = stageOf([entry("a", "K7Q2A", true)]);
  stage.away = true;
  await assert.rejects(questions.run());
  assert.equal(questions.next(), stage.at);
  stage.away = false;
  await questions.run();
  assert.deepEqual([questions.next(), asked], [MIDNIGHT, ["a", "a"]]);
});
test("[SP10] a question that is reported again, also during a look, makes its session look again until it has", async () => {
  const { stage, asked, questions } = stageOf();
  const report = (): void => questions.reported("a", [entry("a", "K7Q2A", true)]);
  report();
  await questions.run();
  report();
  assert.equal(questions.next(), stage.at);
  stage.away = true;
  await assert.rejects(questions.run());
  assert.equal(questions.next(), stage.at);
  stage.away = false;
  stage.looking = () => {
    stage.looking = () => {};
    report();
  };
  await questions.run();
  assert.equal(questions.next(), stage.at);
  await questions.run();
  assert.deepEqual([questions.next(), asked], [MIDNIGHT, ["a", "a", "a", "a"]]);
});
