/**
 * Notifications with the built program: a real gateway, a real node with a `notify-send` that writes down what it gets, and a channel.
 * Told once, in a place that works, also when the gateway is killed; never to a guest.
 */
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { ChannelStack } from "./channel-stack.ts";
import { type Json, Machine, type NodeProcess, until } from "./support.ts";

interface Row {
  readonly kind: string;
  readonly state: string;
  readonly toldIn?: string;
  readonly failures?: readonly string[];
}
/** Texts of the agent's main conversation that contain `part`. */
async function noted(client: { call(method: string, params?: Json): Promise<Json> }, part: string): Promise<string[]> {
  const { events } = (await client.call("session.subscribe", { sessionKey: "main", afterSeq: 0 })) as {
    events: { payload: { text?: string } }[];
  };
  return events.flatMap(({ payload: { text } }) => (text?.includes(part) ? [text] : []));
}

describe("notifications on a desktop", () => {
  const machine = new Machine();
  const programs = join(machine.folder, "bin");
  const shown = join(machine.folder, "shown");
  const gate = join(machine.folder, "gate");
  const started = join(machine.folder, "started");
  let node: NodeProcess;
  const lines = (): string[] =>
    existsSync(shown)
      ? readFileSync(shown, "utf8")
          .split("\n")
          .filter((line) => line !== "")
      : [];
  const rows = async (): Promise<readonly Row[]> =>
    (JSON.parse(await machine.ok("notifications", "--json")) as { notifications: readonly Row[] }).notifications;
  const begin = (variables: Readonly<Record<string, string>>): Promise<NodeProcess> =>
    machine.node("lap", undefined, { PATH: `${programs}:${process.env["PATH"] ?? ""}`, XDG_RUNTIME_DIR: "/nowhere", ...variables });

  before(async () => {
    mkdirSync(programs);
    // One line for each call: its arguments and whether it got a token. While the gate is closed, it does not end.
    const script = `#!/bin/sh\nset -- "$@" "token=$GSV_TOKEN"\nprintf '%s|' "$@" >> '${shown}'\necho >> '${shown}'\necho x >> '${started}'\nwhile [ -e '${gate}' ]; do sleep 0.05; done\n`;
    writeFileSync(join(programs, "notify-send"), script);
    chmodSync(join(programs, "notify-send"), 0o755);
    await machine.up();
  });
  after(() => machine.end());

  it("[NT5][NT13] a wrong place is refused; a place that does not work is named, and the main conversation is told instead", async () => {
    const wrong = await machine.gsv(["config", "set", "notifications.budget", "desk"]);
    assert.notEqual(wrong.code, 0);
    assert.match(wrong.stderr, /`desk` is not a place\. Places are `main`, `last`, `desktop`/);
    await machine.ok("config", "set", "notifications.budget", "desktop");
    const tested = await machine.gsv(["notifications", "test", "--kind", "budget"]);
    assert.match(tested.stderr, /told in main; not in desktop: No connected machine can show notifications\./);
    assert.match(await machine.ok("status"), /Notifications about budget are told elsewhere, because desktop does not work/);
    const doctor = await machine.gsv(["doctor", "--offline"]);
    assert.match(doctor.stdout + doctor.stderr, /Notifications about budget are told elsewhere/);
    const client = await machine.client();
    assert.equal((await noted(client, "This is a test:")).length, 1);
    client.close();
  });

  it("[NT8] a machine without a desktop says why", async () => {
    const plain = await begin({ DBUS_SESSION_BUS_ADDRESS: "" });
    await machine.ok("config", "set", "notifications.budget", "desktop/lap");
    const { places } = JSON.parse(await machine.ok("notifications", "--json")) as { places: { kind: string; problem?: string }[] };
    assert.match(places.find(({ kind }) => kind === "budget")?.problem ?? "", /outside of a desktop session/);
    await plain.kill("SIGTERM");
    assert.deepEqual(lines(), []);
  });

  it("[NT8] a node shows one with notify-send, with arguments and without its token", async () => {
    node = await begin({ DBUS_SESSION_BUS_ADDRESS: "unix:path=/nowhere" });
    const tested = await machine.gsv(["notifications", "test", "--kind", "budget"]);
    assert.match(tested.stderr, /told in desktop\/lap/);
    assert.deepEqual(lines(), [
      "--app-name=GSV|--|A limit of GSV is used up|This is a test: notifications of this kind come here.|token=|",
    ]);
    assert.match(await machine.ok("notifications"), /budget\s+desktop\/lap\s+This is a test/);
    assert.doesNotMatch(await machine.ok("status"), /told elsewhere/);
  });

  it("[NT7] a gateway that is killed while a desktop shows one asks no desktop again, and tells it once in the main conversation", async () => {
    writeFileSync(gate, "");
    const client = await machine.client();
    const asked = client.call("notifications.test", { kind: "budget" }).catch(() => undefined);
    await until("the program runs", () => lines().length === 2);
    await machine.killWorkerd();
    writeFileSync(gate, "");
    await asked;
    const [newest] = await until(
      "it is told",
      async () => {
        const all = await rows();
        return all[0]?.state === "told" ? all : undefined;
      },
      60_000,
      300,
    );
    assert.equal(newest?.toldIn, "main");
    assert.match(newest?.failures?.[0] ?? "", /^desktop\/lap: It is not known whether it was shown/);
    assert.equal(lines().length, 2);
    assert.ok(node.running);
    const again = await machine.client();
    assert.equal((await noted(again, "This is a test:")).length, 2);
    again.close();
  });
});

describe("notifications over a channel", () => {
  let stack: ChannelStack;
  before(async () => {
    stack = await ChannelStack.start({ owners: ["owner"], allowFrom: ["anna"] });
    await stack.say("owner", "o1", "say hello");
    await stack.told("owner", 1);
  });
  after(() => stack.end());

  it("[NT10] a guest whose run fails reads one neutral sentence; the owner is told the cause, once, also over a kill", {
    timeout: 90_000,
  }, async () => {
    await stack.call("config.set", { path: "notifications.guest", value: "last" });
    await stack.say("anna", "a1", '[[script {"status":401,"message":"the key sk-of-the-fake-provider is no key"}]]');
    const [word] = await stack.told("anna", 1);
    assert.equal(word, "Something went wrong, and I can't answer this now. Please try again later.");
    const [, cause = ""] = await stack.told("owner", 2);
    assert.match(cause, /A run over example for \{"dm":"anna".*\} failed, and they were told to try again later\. The cause: /);
    assert.doesNotMatch(cause, /sk-of-the-fake-provider/);
    await stack.killGateway();
    await stack.bootGateway();
    await stack.say("anna", "a2", '[[script {"status":401,"message":"no"}]]');
    assert.equal((await stack.told("anna", 2))[1], word);
    await stack.quiet();
    // The second has the same cause, and waits for the hour.
    assert.equal(stack.program.to("owner").length, 2);
    const { notifications } = (await stack.call("notifications.list")) as { notifications: Row[] };
    assert.deepEqual(
      notifications.map(({ kind, state, toldIn }) => [kind, state, toldIn]),
      [
        ["guest", "waiting", undefined],
        ["guest", "told", "example/default/dm/owner"],
      ],
    );
    for (const { text } of stack.program.shown.filter(({ to }) => to === "anna")) assert.doesNotMatch(text, /key|401|provider/);
  });

  it("[NT6] a notification that the platform does not take is told in the main conversation, and causes no further one", {
    timeout: 90_000,
  }, async () => {
    stack.program.onCallback = ({ text }) => (text.includes("This is a test") ? "gone" : "take");
    await stack.call("config.set", { path: "notifications.job", value: "last" });
    await stack.call("notifications.test", { kind: "job" });
    const row = await until(
      "it is told by the next way",
      async () => {
        const { notifications } = (await stack.call("notifications.list")) as { notifications: Row[] };
        return notifications.find(({ kind, toldIn }) => kind === "job" && toldIn === "main");
      },
      60_000,
      200,
    );
    assert.match(row.failures?.[0] ?? "", /^example\/default\/dm\/owner: /);
    const client = await stack.client();
    assert.equal((await noted(client, "This is a test:")).length, 1);
    assert.deepEqual(await noted(client, "could not be delivered"), []);
    client.close();
  });
});
