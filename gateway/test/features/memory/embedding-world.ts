/** Memories of an embedding service, in tables of their own: services, limits, the clock and kills are the test's. */
import assert from "node:assert/strict";
import type { EmbeddingsConfig } from "../../../../protocol/gen/types.ts";
import { meaningOf } from "../../../../test/fakes/meaning.ts";
import { memory } from "./rows-contract.ts";
import { database } from "../search/recall-measure.ts";
import { sqliteRows } from "../../support/rows.ts";
import { shortened } from "../../../src/embeddings/answer.ts";
import { type ChosenEmbeddings, targetOf } from "../../../src/embeddings/choose.ts";
import type { Database } from "../../../src/platform/sql.ts";
import type { EmbedAnswer } from "../../../src/ports/embeddings.ts";
import type { OwnCall, OwnUse } from "../../../src/ports/spend.ts";
import { D1Memory } from "../../../src/features/memory/d1-store.ts";
import { beginsAgain, EMBEDDING_MIGRATIONS, EmbeddingStateStore } from "../../../src/features/memory/embedding-state-store.ts";
import { EmbeddingPass } from "../../../src/features/memory/embedding-pass.ts";

export const SCOPE = { tenantId: "default", agentId: "main" };
const SMALL: EmbeddingsConfig = { provider: "openai" };
export const LARGE: EmbeddingsConfig = { provider: "openai", model: "text-embedding-3-large" };
export class Killed extends Error {}

/** The platform's `exec` gives a cursor. */
export function cursors(db: Database): Database {
  const exec = (query: string, ...values: (string | number | null)[]) => {
    const [value] = db.sql.exec(query, ...values).toArray();
    return { next: () => (value === undefined ? { done: true } : { done: false, value }) };
  };
  return { sql: { exec } } as never;
}

export function world() {
  const db = database();
  for (const { up } of EMBEDDING_MIGRATIONS) up(db.sql);
  const state = new EmbeddingStateStore(cursors(db));
  const given = {
    settings: SMALL as EmbeddingsConfig,
    now: 1_000,
    version: 1,
    /** Statements of the database until the gateway is killed. */
    killAfter: Number.POSITIVE_INFINITY,
    answer: (texts: readonly string[], { of }: ChosenEmbeddings): EmbedAnswer => ({
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
      settingsVersion: () => given.version,
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
        const settle = ({ input }: OwnUse): void => {
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
    beginsAgain(state.read(), targetOf(given.settings), given.version) || (state.read().dueAt ?? Number.POSITIVE_INFINITY) <= given.now;
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
  return { given, state, rows, pass, store, isDue, settle, stateOf, asked, calls };
}
export const DONE = "done text-embedding-3-small";
