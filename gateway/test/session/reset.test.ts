/** Resets and compactions that are asked for, on the real runtime: the archive is in the bucket before a message goes. */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createArchives } from "../../src/storage/archives.ts";
import { idle, newSession, says, Stage, type TestSession, value } from "./support.ts";
import { evict } from "../support/evict.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

describe("reset and compaction", () => {
  const talk = async (stage: Stage, send: TestSession["send"], ids: readonly string[]): Promise<void> => {
    stage.auto = () => says("fine");
    for (const id of ids) {
      await send(id);
      await stage.ended(`run-${id}`);
    }
  };
  it("[R5] [P17] the archive is in the bucket, and a new conversation begins", async () => {
    const stage = new Stage().open();
    const s = newSession();
    await talk(stage, s.send, ["a", "b"]);
    const before = value(await s.port.get());
    const reset = value(await s.port.reset());
    expect(reset).toMatchObject({ ok: true, archivedMessages: 4, oldSessionId: before.sessionId, tokensCleared: before.tokens });
    const archived = value(await createArchives(env.STORAGE).read(reset.archivedTo ?? ""));
    expect(archived.map((message) => message.role)).toEqual(["user", "assistant", "user", "assistant"]);
    const after = value(await s.port.get());
    expect(after).toMatchObject({
      messageCount: 0,
      sessionId: reset.newSessionId,
      previousSessionIds: [before.sessionId],
      tokens: { total: 0 },
    });
    await talk(stage, s.send, ["c"]);
    expect(value(await s.port.preview({ limit: 10 })).messages).toHaveLength(2);
    expect(value(await s.port.history()).previousSessionIds).toEqual([before.sessionId]);
  });
  it("[R5] [W16] without the bucket nothing is removed, and the caller is told", async () => {
    const stage = new Stage().open();
    const s = newSession();
    await talk(stage, s.send, ["a"]);
    stage.bucketAway = true;
    const failed = await s.port.reset();
    expect(!failed.ok && failed.error.reason).toBe("session.archive_failed");
    expect(value(await s.port.get()).messageCount).toBe(2);
  });
  it("[R6] /new resets and says so; /compact keeps the last messages", async () => {
    const stage = new Stage().open();
    const s = newSession();
    await talk(stage, s.send, ["a", "b", "c"]);
    expect(value(await s.send("k", "/compact 2"))).toMatchObject({
      status: "command",
      command: "compact",
      response: "4 messages were archived, 2 stay.",
    });
    expect(value(await s.port.preview({ limit: 10 })).messages).toHaveLength(2);
    expect(value(await s.send("n", "/new"))).toMatchObject({ status: "command", command: "new" });
    expect(value(await s.port.get()).messageCount).toBe(0);
    // Sent again it is not done again.
    await talk(stage, s.send, ["d"]);
    await s.send("n", "/new");
    expect(value(await s.port.get()).messageCount).toBe(2);
  });
  it("[P3.2] [W18] an idle conversation is archived before its next message, which starts the new one", async () => {
    const stage = new Stage().open();
    stage.resetPolicy = { mode: "idle", idleMinutes: 1 };
    const s = newSession();
    await talk(stage, s.send, ["a"]);
    await idle(s.port);
    await runInDurableObject(s.stub, (_session, ctx) => {
      ctx.storage.sql.exec("UPDATE parts SET body = json_set(body, '$.updatedAt', json_extract(body, '$.updatedAt') - 61000) WHERE id = 1");
    });
    await evict(s.stub);
    expect(value(await s.send("b"))).toMatchObject({ status: "started", queued: true });
    expect(await stage.ended("run-b")).toBe("final");
    expect(value(await s.port.get()).messageCount).toBe(2);
    expect(value(await s.port.history()).previousSessionIds).toHaveLength(1);
  });
});
