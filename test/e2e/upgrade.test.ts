/** A home of an earlier version is opened, converted and used. `test/fixtures/home-5bdadb2/README.md` lists what is in it. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import { signed } from "../../channels/fakes/example/program.ts";
import { type Chat, type Json, Machine, type NodeProcess, ROOT, textOf, transcript, until } from "./support.ts";

const CHANNEL_SECRET = "a-secret-of-the-fixture";
const key = (name: string, agent = "main"): string => `agent:${agent}:cli:dm:${name}`;

/** A machine whose home is the fixture; nothing is started yet. */
function oldMachine(): Machine {
  const machine = new Machine();
  execFileSync("tar", ["-xzf", join(ROOT, "test", "fixtures", "home-5bdadb2", "home.tar.gz"), "-C", machine.folder]);
  return machine;
}

describe("[P22] a home of version 5bdadb2", () => {
  const machine = oldMachine();
  let laptop: NodeProcess;
  before(async () => {
    await machine.up();
    // The daily reset would archive the old conversations before these tests look at them.
    await machine.ok("config", "set", "session.defaultResetPolicy.mode", "manual");
    laptop = await machine.node("laptop");
  });
  after(() => machine.end());

  const json = async (...args: string[]): Promise<Json> => JSON.parse(await machine.ok(...args, "--json")) as Json;
  /** What the session's log tells, once nothing is left to do. */
  async function settled(sessionKey: string): Promise<{ role: string; content: unknown }[]> {
    const client = await machine.client();
    await until(
      `${sessionKey} is idle`,
      async () => {
        const stats = await client.call("session.stats", { sessionKey });
        return stats["state"] === "idle" && stats["queueSize"] === 0;
      },
      60_000,
      50,
    );
    const messages = await transcript(client, sessionKey);
    client.close();
    return messages;
  }
  /** How its runs ended. Only of conversations without a compaction: rows before one are kept for some days, and this home gets older. */
  async function endsOf(sessionKey: string): Promise<Chat[]> {
    const client = await machine.client();
    const { events } = (await client.call("session.subscribe", { sessionKey, afterSeq: 0 })) as { events: { payload: Chat }[] };
    client.close();
    return events.map(({ payload }) => payload).filter(({ state }) => ["final", "error", "aborted"].includes(state));
  }
  const states = (ends: readonly Chat[]): string[] => ends.map(({ state }) => state);

  it("[K8] [K4] a model call that was interrupted is made again, and the message that waited behind it is answered", async () => {
    await settled(key("model"));
    const ends = await endsOf(key("model"));
    assert.deepEqual(states(ends), ["final", "final"]);
    assert.match(textOf(ends[0] as Chat), /^word1 word2 .*word12\b/);
    assert.match(textOf(ends[1] as Chat), /^the queued word/);
  });

  for (const [name, node] of [
    ["tool", "laptop"],
    ["grace", "desk"],
  ] as const)
    it(`[K16] [P6] a command of \`${node}\` that was interrupted is not started again: its outcome is unknown, and the run ends`, async () => {
      const messages = await settled(key(name));
      const ends = await endsOf(key(name));
      assert.deepEqual(states(ends), ["final"]);
      assert.deepEqual(
        messages.map(({ role }) => role),
        ["user", "assistant", "toolResult", "assistant"],
      );
      assert.match(JSON.stringify(messages[2]?.content), /outcome_unknown|not known|unknown/);
      assert.ok(!existsSync(laptop.file("begun.txt")), "the command ran a second time");
    });

  it("[K25] [R8] a compaction that was interrupted is finished, with a note where the model that should summarise is gone", async () => {
    const messages = await settled(key("archiving"));
    assert.match(JSON.stringify(messages), /message 6/);
    const { archives } = (await json("session", "history", key("archiving"))) as { archives: { path: string }[] };
    assert.equal(archives.length, 1);
    assert.match(await machine.ok("session", "show", archives[0]?.path ?? ""), /message 1/);
  });

  it("every conversation is listed, with its messages, settings and transcripts", async () => {
    const { sessions } = (await json("session", "list")) as { sessions: { sessionKey: string; label?: string }[] };
    assert.deepEqual(
      sessions.map(({ sessionKey }) => sessionKey).sort(),
      [
        "agent:main:example:default:dm:guest",
        "agent:main:main",
        key("main", "work"),
        ...["archiving", "compacted", "grace", "main", "media", "model", "tool"].map((name) => key(name)),
      ].sort(),
    );
    assert.equal(sessions.find(({ sessionKey }) => sessionKey === key("compacted"))?.label, "The compacted one");

    const present = await machine.ok("session", "show", key("main"));
    for (const text of ["the present word", "present tool output", "from the first"]) assert.ok(present.includes(text), present);
    assert.ok(!present.includes("the archived word"));
    const { archives } = (await json("session", "history", key("main"))) as { archives: { path: string }[] };
    assert.equal(archives.length, 1);
    assert.match(await machine.ok("session", "show", archives[0]?.path ?? ""), /the archived word[\s\S]*archived tool output/);

    const compacted = await machine.ok("session", "show", key("compacted"));
    assert.match(compacted, /say four/);
    assert.doesNotMatch(compacted, /say one/);
    assert.match(await machine.ok("session", "show", key("media")), /note\.txt/);
  });

  it("configuration, tokens, nodes, agents, skills and files are unchanged", async () => {
    assert.equal((await machine.ok("config", "get", "userTimezone")).trim(), "Europe/Stockholm");
    assert.equal((await machine.ok("config", "get", "timeouts.toolMs")).trim(), "240000");
    const { tokens } = (await json("token", "list")) as { tokens: { label?: string; kind: string; nodeId?: string; revokedAt?: number }[] };
    assert.deepEqual(
      tokens.flatMap(({ label, kind, nodeId, revokedAt }) =>
        ["the reader", "the laptop", "revoked"].includes(label ?? "") ? [[label, kind, nodeId, revokedAt !== undefined]] : [],
      ),
      [
        ["the reader", "client", undefined, false],
        ["the laptop", "node", "laptop", false],
        ["revoked", "client", undefined, true],
      ],
    );
    const client = await machine.client();
    const { nodes } = (await client.call("nodes.list")) as { nodes: { nodeId: string; online: boolean }[] };
    client.close();
    assert.deepEqual(nodes.map(({ nodeId, online }) => [nodeId, online]).sort(), [
      ["desk", false],
      ["laptop", true],
    ]);
    assert.match(await machine.ok("agent", "list"), /^main +default[\s\S]*^work .*for work/m);
    assert.match(await machine.ok("skills", "status"), /^tea +ready/m, "[F12] an approval of an earlier version stays");
    assert.match(await machine.ok("workspace", "cat", "versioned.md"), /second version/);
    assert.match(await machine.ok("workspace", "diff", "versioned.md"), /-first version\n\+second version/);
    assert.match(await machine.ok("workspace", "cat", "MEMORY.md"), /the fixture likes tea/);
    assert.match(await machine.ok("search", "archived"), /archived/);
  });

  it("[AU2] the old audit is whole, and a new entry commits to it", async () => {
    const { entries } = await json("audit", "--action", "audit.genesis");
    const [genesis] = entries as { detail: string }[];
    assert.match(genesis?.detail ?? "", /^\d+ entries of an earlier version, the last with hash [0-9a-f]{64}$/);
    assert.match(await machine.ok("audit", "--verify"), /The audit log is intact/);
  });

  it("[P7] the node's ledger holds its old calls, and none of them stays open", async () => {
    const ledger = join(machine.home, "node", "laptop", "ledger");
    assert.ok(readdirSync(ledger).includes("ledger.log"));
    await until("the gateway has taken every old result", async () => {
      const calls = join(machine.home, "node", "laptop", "calls");
      return readdirSync(calls).every((call) => readdirSync(join(calls, call)).includes("released"));
    });
  });

  it("new messages are answered in old conversations, and tools run", async () => {
    assert.match(await machine.ok("chat", "say after the upgrade"), /^after the upgrade/);
    assert.match(await machine.ok("chat", "run@laptop: echo ran after the upgrade"), /ran after the upgrade/);
    assert.match(await machine.ok("chat", "--agent", "work", "say still at work"), /^still at work/);
    assert.match(await machine.ok("chat", "who are you?"), /I am Ada/);
    await machine.ok("session", "set", key("archiving"), "--model", "demo/demo");
    for (const name of ["tool", "grace", "model", "archiving", "compacted"])
      assert.match(await machine.ok("chat", "-s", key(name), "say hello again"), /^hello again/, name);
  });

  it("[P2] [P9] the channel knows its people, and the owner's conversation goes on", async () => {
    const at = `http://127.0.0.1:${machine.port}/channels/example/default`;
    const body = JSON.stringify({ id: "after-the-upgrade", from: "owner", text: "say to the owner again" });
    const said = await fetch(at, { method: "POST", headers: signed(CHANNEL_SECRET, body), body });
    assert.equal(said.status, 200, await said.text());
    const texts = await until("the owner is answered", async () => {
      const response = await fetch(`${at}?after=0`, { headers: signed(CHANNEL_SECRET, "") });
      const { messages } = (await response.json()) as { messages: { to: string; text: string }[] };
      const mine = messages.filter(({ to }) => to === "owner").map(({ text }) => text);
      return mine.some((text) => text.includes("to the owner again")) ? mine : undefined;
    });
    assert.equal(texts.length, 2, JSON.stringify(texts));
    const messages = await settled("agent:main:main");
    assert.equal(messages.filter(({ role }) => role === "user").length, 2);
  });
});

/** Changes rows of every object of one class, as a newer program would have. */
function rewrite(machine: Machine, className: string, change: (database: DatabaseSync) => void): void {
  for (const file of databases(machine, className)) {
    const database = new DatabaseSync(file);
    change(database);
    database.close();
  }
}
const databases = (machine: Machine, className: string): string[] => {
  const folder = join(machine.home, "gateway", "do", className);
  return readdirSync(folder)
    .filter((name) => name.endsWith(".sqlite") && name !== "metadata.sqlite")
    .map((name) => join(folder, name));
};
/** Every row of every table, as text. */
function contents(machine: Machine, className: string): string[][] {
  return databases(machine, className).map((file) => {
    const database = new DatabaseSync(file, { readOnly: true });
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'").all();
    const text = tables.map(({ name }) => `${name}\n${JSON.stringify(database.prepare(`SELECT * FROM "${name}"`).all())}`);
    database.close();
    return text;
  });
}

describe("[P22] state that a newer version has written", () => {
  for (const [what, className, change] of [
    [
      "tables of the gateway with a migration that this program does not know",
      "gsv-Gateway",
      (database: DatabaseSync) => database.exec("UPDATE schema_version SET version = 99"),
    ],
    [
      "tables of a conversation with a migration that this program does not know",
      "gsv-Session",
      (database: DatabaseSync) => database.exec("UPDATE schema_version SET version = 99"),
    ],
    [
      "a state row with a higher version",
      "gsv-Session",
      (database: DatabaseSync) => database.exec("UPDATE parts SET body = json_set(body, '$.v', 99) WHERE id = 1"),
    ],
    ["a table of the bucket with a higher version", "R2", (database: DatabaseSync) => database.exec("UPDATE format SET version = 99")],
  ] as const)
    it(`[UP2] [UP3] ${what}: refused with a sentence that says what to do, and unchanged`, async () => {
      const machine = oldMachine();
      try {
        rewrite(machine, className, change);
        const rows = contents(machine, className);
        await machine.usePort();
        const { code, stderr } = await machine.gsv(["up"]);
        assert.equal(code, 1, stderr);
        assert.match(stderr, /A newer version of GSV has written this state[\s\S]*version 99[\s\S]*Install the newer version/);
        assert.equal(stderr.split("A newer version of GSV").length, 2, `said once:\n${stderr}`);
        assert.doesNotMatch(stderr, /--rollback|is back|workerd/, "there is one way on");
        assert.deepEqual(contents(machine, className), rows);
      } finally {
        await machine.end();
      }
    });
});
