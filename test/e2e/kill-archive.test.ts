/**
 * The kill matrix, resets and compactions: SIGKILL of workerd around the archive (K25, K26, P17). Whatever the moment, the reset has
 * happened once or not at all, every message is in the archive or in the conversation, and a retry ends in exactly one archive.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, watch } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { gunzipSync } from "node:zlib";
import { delays, type LogMessage, Rig, spin } from "./kill-support.ts";
import { type Client, type Json, until } from "./support.ts";

const TURNS = 4;
const textOf = ({ content }: LogMessage): string =>
  typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("");

describe("an archive", () => {
  let rig: Rig;
  let folder = "";
  before(async () => {
    rig = await Rig.start();
    folder = join(rig.machine.home, "workspace", "agents", "main", "sessions");
  });
  after(async () => {
    await rig.end();
  });
  beforeEach(async () => {
    await rig.calm();
  });
  afterEach(() => {
    rig.checkLog();
  });

  type Cell = ReturnType<Rig["cell"]>;
  /** A session with some turns. */
  async function grown(title: string): Promise<Cell> {
    const cell = rig.cell(title);
    rig.model.serve(cell.name, { answer: ({ text }) => ({ text: `about ${text.replace(/.*#/s, "")}` }) });
    await rig.with(async (client) => {
      for (let i = 0; i < TURNS; i++) {
        await cell.say(client);
        await client.ending(cell.said[i]?.runId ?? "");
      }
    });
    return cell;
  }
  const get = (cell: Cell): Promise<Json> => rig.with((client) => client.call("session.get", { sessionKey: cell.sessionKey }));
  /** The messages of each archive that mentions the cell. */
  function archives(cell: Cell): LogMessage[][] {
    if (!existsSync(folder)) return [];
    return readdirSync(folder)
      .filter((name) => name.endsWith(".jsonl.gz"))
      .map((name) => gunzipSync(readFileSync(join(folder, name))).toString("utf8"))
      .filter((text) => text.includes(cell.name))
      .map((text) =>
        text
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line) as LogMessage),
      );
  }
  /** Every message is in the archive or in the conversation, once, in order. */
  async function isComplete(cell: Cell): Promise<{ archived: number; kept: number }> {
    const { messages } = await cell.look();
    const stored = archives(cell);
    assert.ok(stored.length <= 1, `${stored.length} archives of one reset`);
    const state = await get(cell);
    const archived = stored[0] ?? [];
    // An archive whose reset was not committed is only a copy.
    const fresh = (state["previousSessionIds"] as string[]).length > 0;
    const users = [...(fresh || messages.length < 2 * TURNS ? archived : []), ...messages]
      .filter(({ role }) => role === "user")
      .map(textOf);
    assert.deepEqual(
      users,
      cell.said.map(({ message }) => message),
    );
    return { archived: archived.length, kept: messages.length };
  }
  /** Sends a request and kills workerd `delay` ms later; there may be no answer. */
  async function askAndKill(ask: (client: Client) => Promise<Json>, delay: number): Promise<void> {
    await rig.with(async (client) => {
      ask(client).catch(() => undefined);
      await new Promise(setImmediate);
      spin(delay);
      rig.shoot();
    });
    await rig.risen();
  }

  for (const delay of delays([0, 6])) {
    it(`[K25] [K26] [P17] [F80] workerd killed ${delay} ms into session.reset: it has happened once or not at all, and a retry completes it`, async () => {
      const cell = await grown(`reset ${delay}`);
      const old = await get(cell);
      await askAndKill((client) => client.call("session.reset", { sessionKey: cell.sessionKey }), delay);
      await cell.settled();
      const now = await get(cell);
      const { archived, kept } = await isComplete(cell);
      const previous = now["previousSessionIds"] as string[];
      if (previous.length === 0) {
        assert.deepEqual([now["sessionId"], kept], [old["sessionId"], 2 * TURNS]);
        await rig.with((client) => client.call("session.reset", { sessionKey: cell.sessionKey }));
      } else assert.deepEqual([previous, kept, archived], [[old["sessionId"]], 0, 2 * TURNS]);
      assert.deepEqual((await get(cell))["previousSessionIds"], [old["sessionId"]]);
      assert.deepEqual(await isComplete(cell), { archived: 2 * TURNS, kept: 0 });
    });
  }

  it("[K25] [P17] workerd killed between archive and reset: it completes by itself, with one archive and one new session", async () => {
    const cell = await grown("reset put");
    const old = await get(cell);
    const watcher = watch(folder.replace(/sessions$/, ""), { recursive: true }, (_event, name) => {
      if (name?.endsWith(`${String(old["sessionId"])}.jsonl.gz`)) rig.shoot();
    });
    await rig.with(async (client) => {
      client.call("session.reset", { sessionKey: cell.sessionKey }).catch(() => undefined);
      await rig.risen();
    });
    watcher.close();
    await cell.settled();
    const now = await get(cell);
    assert.deepEqual(now["previousSessionIds"], [old["sessionId"]]);
    assert.deepEqual(await isComplete(cell), { archived: 2 * TURNS, kept: 0 });
  });

  it("[K26] [P4] a message that arrives during a reset, before the kill, is answered once, in the new conversation", async () => {
    const cell = await grown("reset queue");
    await rig.with(async (client) => {
      client.call("session.reset", { sessionKey: cell.sessionKey }).catch(() => undefined);
      await cell.say(client);
      rig.shoot();
    });
    await rig.risen();
    await cell.settled();
    assert.deepEqual(await isComplete(cell), { archived: 2 * TURNS, kept: 2 });
    await cell.judge({ compacted: true });
  });

  for (const delay of delays([0, 2])) {
    it(`[K25] [P17] workerd killed ${delay} ms into session.compact: the kept messages and the archive are complete together`, async () => {
      const cell = await grown(`compact ${delay}`);
      await askAndKill((client) => client.call("session.compact", { sessionKey: cell.sessionKey, keepMessages: 2 }), delay);
      await cell.settled();
      const { archived, kept } = await isComplete(cell);
      if (kept === 2 * TURNS) await rig.with((client) => client.call("session.compact", { sessionKey: cell.sessionKey, keepMessages: 2 }));
      else assert.deepEqual([archived, kept], [2 * TURNS - 2, 2]);
      assert.deepEqual(await isComplete(cell), { archived: 2 * TURNS - 2, kept: 2 });
    });
  }

  it("[K25] [P1] /compact as a message that is repeated after the kill is done once", async () => {
    const cell = await grown("compact command");
    const command = { sessionKey: cell.sessionKey, message: "/compact 2", messageId: `compact-${cell.name}` };
    await askAndKill((client) => client.call("chat.send", command), 1);
    for (let i = 0; i < 2; i++) {
      const again = await rig.with((client) => client.call("chat.send", command));
      assert.equal(again["status"], "command", JSON.stringify(again));
    }
    await cell.settled();
    assert.deepEqual(await isComplete(cell), { archived: 2 * TURNS - 2, kept: 2 });
  });

  it("[K26] [P1] a message from before the reset is recognised after it", async () => {
    const cell = await grown("reset dedupe");
    await askAndKill((client) => client.call("session.reset", { sessionKey: cell.sessionKey }), 20);
    await cell.settled();
    await until("every message is known", () =>
      rig.with(async (client) => {
        for (const said of cell.said) assert.equal((await client.call("chat.send", { ...said }))["duplicate"], true);
        return true;
      }),
    );
    assert.equal(rig.model.turns(cell.name).length, TURNS);
  });
});
