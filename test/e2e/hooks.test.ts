/** Hooks with the built program and a real gateway: another service's request wakes the agent once, also when the gateway is killed. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import { type FakeModel, Machine, until, withModel } from "./support.ts";

interface Shown {
  readonly hook: { readonly accepted: number; readonly refused: number; readonly waiting: number };
  readonly deliveries: readonly { readonly deliveryId: string; readonly status: string }[];
}

describe("hooks", () => {
  const machine = new Machine();
  let fake: FakeModel;
  let secret = "";
  const show = async (name: string): Promise<Shown> => JSON.parse(await machine.ok("hook", "show", name, "--json")) as Shown;
  const post = (name: string, body: string, headers: Readonly<Record<string, string>>): Promise<Response> =>
    fetch(`http://127.0.0.1:${machine.port}/hooks/${name}`, { method: "POST", body, headers });
  /** As GitHub sends it. */
  const github = (id: string, body: object): Promise<Response> => {
    const text = JSON.stringify(body);
    const digest = createHmac("sha256", secret).update(text).digest("hex");
    return post("gh", text, { "X-GitHub-Delivery": id, "X-GitHub-Event": "issues", "X-Hub-Signature-256": `sha256=${digest}` });
  };
  const asked = (word: string): number => fake.requests.filter((request) => JSON.stringify(request).includes(word)).length;
  const ended = (name: string, count: number): Promise<unknown> =>
    until("the runs end", async () => (await show(name)).deliveries.filter(({ status }) => status === "ok").length >= count, 60_000, 500);

  withModel(machine, (model) => {
    fake = model;
  });

  it("[HK1] [HK6] [HK7] a hook is added, and its secret, address and what to enter at GitHub are shown once", async () => {
    const { code, stdout, stderr } = await machine.gsv([
      ...["hook", "add", "gh", "Say what this is about: {{body.issue.title}}", "--form", "github"],
      ...["--only", "body.action=opened,reopened"],
    ]);
    assert.equal(code, 0, stderr);
    secret = stdout.trim();
    assert.match(secret, /^gsvh_[a-z2-7]{52}$/);
    assert.ok(stderr.includes(`payload URL http://127.0.0.1:${machine.port}/hooks/gh`), stderr);
    assert.match(stderr, /point a tunnel or a proxy at it/);
    assert.match(await machine.ok("hook", "list"), /gh\s+github\s+0\s+0\s+never\s+Say what this is about/);
    const again = await machine.gsv(["hook", "add", "gh"]);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /gsv hook remove NAME/);
    const wrong = await machine.gsv(["hook", "add", "x", "{{secret}}"]);
    assert.equal(wrong.code, 2, wrong.stderr);
  });

  it("[HK2] [HK4] [HK5] a signed request wakes the agent once; a wrong one gets 401", async () => {
    assert.equal((await github("d1", { action: "opened", issue: { title: "word-of-the-first" } })).status, 202);
    assert.equal((await github("d1", { action: "opened", issue: { title: "word-of-the-first" } })).status, 200);
    assert.equal((await github("d2", { action: "closed", issue: { title: "word-of-the-closed" } })).status, 200);
    const wrong = await post("gh", "{}", { "X-Hub-Signature-256": `sha256=${"0".repeat(64)}` });
    const unknown = await post("absent", "{}", { "X-Hub-Signature-256": `sha256=${"0".repeat(64)}` });
    assert.deepEqual([wrong.status, unknown.status], [401, 401]);
    assert.equal(await wrong.text(), await unknown.text());
    await ended("gh", 1);
    assert.equal(asked("word-of-the-first"), 1);
    assert.equal(asked("word-of-the-closed"), 0);
    assert.equal((await show("gh")).hook.refused, 1);
  });

  it("[HK5] [K28] the gateway is killed right after it has accepted: the delivery runs once", async () => {
    assert.equal((await github("d3", { action: "opened", issue: { title: "word-of-the-killed" } })).status, 202);
    await machine.killWorkerd();
    assert.equal((await github("d3", { action: "opened", issue: { title: "word-of-the-killed" } })).status, 200);
    await ended("gh", 2);
    assert.equal(asked("word-of-the-killed"), 1);
  });

  it("[HK8] 10 MB are refused with 413 before they are sent", async () => {
    const socket = connect(machine.port, "127.0.0.1");
    const head = ["POST /hooks/gh HTTP/1.1", `Host: 127.0.0.1:${machine.port}`, `X-Hub-Signature-256: sha256=${"0".repeat(64)}`];
    socket.write(`${[...head, `Content-Length: ${10 * 1024 * 1024}`].join("\r\n")}\r\n\r\n`);
    const [answer] = (await once(socket, "data")) as [Buffer];
    socket.destroy();
    assert.match(answer.toString(), /^HTTP\/1\.1 413 /);
  });

  it("[HK10] what comes while GSV is stopped runs after the resume", async () => {
    await machine.ok("stop", "--all");
    assert.equal((await github("d4", { action: "opened", issue: { title: "word-of-the-stopped" } })).status, 202);
    assert.equal((await show("gh")).hook.waiting, 1);
    await machine.ok("resume");
    await ended("gh", 3);
    assert.equal(asked("word-of-the-stopped"), 1);
  });

  it("[HK12] `gsv hook test` sends a signed sample over HTTP", async () => {
    const left = await machine.gsv(["hook", "test", "gh"]);
    assert.equal(left.code, 0, left.stderr);
    assert.match(left.stderr, /ignore this sample/);
    const sent = await machine.gsv(["hook", "test", "gh", "--event", "issues", "--body", "-"], {
      input: '{"action":"reopened","issue":{"title":"word-of-the-sample"}}',
    });
    assert.equal(sent.code, 0, sent.stderr);
    await ended("gh", 4);
    assert.equal(asked("word-of-the-sample"), 1);
  });

  it("[HK1] [S5] the secret is nowhere on the disk, and is refused once the hook is removed", async () => {
    const files = readdirSync(machine.folder, { recursive: true, encoding: "utf8" })
      .map((name) => join(machine.folder, name))
      .filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true);
    assert.ok(files.length > 10);
    for (const file of files) assert.ok(!readFileSync(file).includes(secret), file);
    await machine.ok("hook", "remove", "gh", "--yes");
    assert.equal((await github("d9", { action: "opened" })).status, 401);
    assert.equal((await machine.gsv(["hook", "show", "gh"])).code, 1);
  });
});
