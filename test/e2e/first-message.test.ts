/** A new user's first steps with the built program: start, chat, use a tool, configure a model. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type FakeModel, isOnline, Machine, type NodeProcess, startFakeModel, transcript, until, withModel } from "./support.ts";

describe("the first message", () => {
  const machine = new Machine();
  let node: NodeProcess;
  let fake: FakeModel;
  before(async () => {
    fake = await startFakeModel();
    await machine.up();
  });
  after(async () => {
    await machine.end();
    await fake.close();
  });

  it("is answered by the demo model without a key or a node; stdout has only the answer", async () => {
    const { code, stdout, stderr } = await machine.gsv(["chat", "say hello there"]);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /hello there/);
    assert.doesNotMatch(stdout, /Connecting|gateway|Token/i);
  });

  it("a second start changes nothing and keeps the token", async () => {
    const { token } = machine;
    await machine.ok("up");
    assert.equal(machine.token, token);
  });

  it("says what to do when no machine is connected", async () => {
    assert.match(await machine.ok("chat", "run: echo hi"), /gsv node/);
  });

  it("[PO11] a command that changes nothing runs at once, one on a machine without a sandbox waits for a word", async () => {
    // Commands must not see this folder, so nothing can confine them to it.
    const bare = await machine.node("bare", join(machine.folder, ".ssh"), { HOME: machine.folder });
    const client = await machine.client();
    const { nodes } = (await client.call("nodes.list")) as { nodes: { sandbox: { missing?: string } }[] };
    assert.match(nodes[0]?.sandbox.missing ?? "", /\.ssh/);
    assert.match(await machine.ok("chat", "run: uname -s"), /Linux|Darwin/);
    const asked = await machine.gsv(["chat", "run: echo made > made.txt"]);
    assert.equal(asked.code, 5, asked.stderr);
    assert.match(asked.stderr, /bare__Bash on bare[\s\S]*which has no sandbox/);
    assert.equal(existsSync(bare.file("made.txt")), false);
    await machine.ok("chat", "/stop");
    await bare.kill("SIGTERM");
    await client.call("node.forget", { nodeId: "bare" });
    client.close();
    // The rest does not depend on what this system can confine.
    await machine.ok("config", "set", "toolApproval.defaultDecision", "allow");
  });

  it("a machine that connects is listed, and a tool runs on it", async () => {
    node = await machine.node("laptop");
    writeFileSync(node.file("notes.txt"), "remember the milk\n");
    assert.match(await machine.ok("tools", "list"), /laptop__Bash/);
    assert.match(await machine.ok("chat", "run: cat notes.txt"), /remember the milk/);
    assert.match(await machine.ok("chat", "write: made/by/agent.txt <- some text"), /laptop__Write/);
    assert.equal(readFileSync(node.file("made/by/agent.txt"), "utf8"), "some text");
  });

  it("[SV7] `gsv node stop` says how a node is stopped that runs in a terminal, and leaves it", async () => {
    const ran = await machine.gsv(["node", "stop", "--id", "laptop"]);
    assert.equal(ran.code, 1, ran.stderr);
    assert.ok(
      ran.stderr.replace(/\s+/g, " ").includes(`runs in a terminal (pid ${node.pid}): press Ctrl-C there, or run \`kill ${node.pid}\``),
      ran.stderr,
    );
    assert.equal(node.running, true);
  });

  it("several tools of one answer run, and each result reaches the model", async () => {
    const answer = await machine.ok("chat", "run: echo first\nrun: echo second");
    // The tools run at the same time and end in any order.
    assert.match(answer, /first/);
    assert.match(answer, /second/);
  });

  it("[S11] a tool does not leave the machine's workspace", async () => {
    writeFileSync(join(machine.folder, "outside.txt"), "secret outside");
    const answer = await machine.ok("chat", "read: ../outside.txt");
    assert.doesNotMatch(answer, /secret outside/);
    assert.match(answer, /workspace/i);
  });

  it("the agent's own files are plain files, and an edit on the disk is read at once", async () => {
    await machine.ok("chat", "write: gsv:NOTES.md <- first version");
    const file = join(machine.home, "workspace", "agents", "main", "NOTES.md");
    assert.equal(readFileSync(file, "utf8").trimEnd(), "first version");
    writeFileSync(file, "by hand");
    assert.match(await machine.ok("chat", "read: gsv:NOTES.md"), /by hand/);
  });

  it("setting a model takes effect with the next message, without a restart", async () => {
    fake.enqueue({ text: "I am the real one." });
    await machine.ok("config", "set", "model", JSON.stringify({ provider: "openai", id: "gpt-fake", baseUrl: `${fake.url}/v1` }));
    await machine.ok("config", "set", "apiKeys.openai", "sk-very-secret-key");
    assert.match(await machine.ok("chat", "who are you?"), /I am the real one\./);
    assert.equal(fake.requests.at(-1)?.body["model"], "gpt-fake");
    await machine.ok("config", "unset", "model");
    assert.match(await machine.ok("chat", "say demo again"), /demo again/);
  });

  it("[S5] a key that was set is never shown", async () => {
    const all = [
      await machine.ok("config", "get"),
      await machine.ok("config", "get", "apiKeys.openai"),
      await machine.ok("chat", "read: gsv:../config.json"),
      machine.gatewayLog(),
    ];
    for (const text of all) assert.doesNotMatch(text, /sk-very-secret-key/);
  });

  it("an unknown setting is refused with the nearest one", async () => {
    const { code, stderr } = await machine.gsv(["config", "set", "model.provder", "x"]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, /model\.provider/);
  });

  it("exit codes and --json are for scripts", async () => {
    const { code, stdout } = await machine.gsv(["chat", "--json", "say for a script"]);
    assert.equal(code, 0);
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.ok(JSON.stringify(lines).includes("for a script"));
    const wrong = await machine.gsv(["chat", "hello"], { env: { GSV_TOKEN: "gsv_admin_aaaaaaaaaa_wrong" } });
    assert.equal(wrong.code, 3, wrong.stderr);
    assert.match(wrong.stderr, /token/i);
  });

  it("[G3] a machine that has gone is told to the model at once", async () => {
    const client = await machine.client();
    await node.kill("SIGTERM");
    await until("the node is offline", async () => !isOnline(await client.call("nodes.list"), "laptop"), 10_000, 150);
    assert.match(await machine.ok("chat", "run@laptop: echo hi"), /laptop/);
    assert.ok((await transcript(client)).length > 4);
  });

  it("stopping and starting again keeps the conversation", async () => {
    const before = (await transcript(await machine.client())).length;
    await machine.ok("down");
    await assert.rejects(machine.client());
    await machine.up();
    const client = await machine.client();
    assert.equal((await transcript(client)).length, before);
    assert.equal(existsSync(join(machine.home, "workspace", "agents", "main", "NOTES.md")), true);
  });
});

describe("[Q5] [P5.2] the size of the prompt", () => {
  const machine = new Machine();
  let fake: FakeModel;
  withModel(machine, (model) => {
    fake = model;
  });
  interface Request {
    readonly messages: readonly { readonly role: string; readonly content: unknown }[];
    readonly tools: readonly { readonly function: { readonly name: string; readonly description: string; readonly parameters: object } }[];
  }
  /** Prompt and tools of the newest request, in tokens of four characters. */
  function tokens(): number {
    const request = fake.requests.at(-1);
    assert.ok(request);
    const { messages, tools } = request.body as unknown as Request;
    const prompt = messages.find(({ role }) => role === "system" || role === "developer");
    assert.ok(typeof prompt?.content === "string" && tools.length > 5);
    const chars = tools.map(
      ({ function: { name, description, parameters } }) => `${name}${description}${JSON.stringify(parameters)}`.length,
    );
    return Math.ceil(chars.reduce((sum, size) => sum + size, prompt.content.length) / 4);
  }
  it("a plain message costs at most 2,500 tokens in a new workspace, before and after the first meeting", async () => {
    await machine.ok("chat", "hello");
    const first = tokens();
    await machine.ok("workspace", "rm", "BOOTSTRAP.md");
    await machine.ok("chat", "hello");
    const later = tokens();
    assert.ok(first <= 2_500 && later <= 2_500, `${first} and ${later} tokens`);
  });
});
