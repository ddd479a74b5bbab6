/** Commands and their time limits, against the fake Discord. */
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { APPLICATION, FakeDiscord } from "../../fakes/discord/fake-discord.ts";
import { Interactions } from "../src/interactions.ts";
import { restClient } from "../src/rest-client.ts";
import { MemoryHost } from "./memory-host.ts";

const discord = new FakeDiscord();
before(() => discord.listen());
after(() => discord.close());

function world() {
  const host = new MemoryHost();
  const { run } = restClient({ token: discord.token, api: discord.api, origin: discord.origin });
  return { host, interactions: new Interactions({ host, run, applicationId: () => APPLICATION }) };
}
const requests = (method: string, path: RegExp): number =>
  discord.log.filter((note) => note.kind === "rest" && note["method"] === method && path.test(String(note["path"]))).length;
const command = { id: "1300000000000000001", token: "tok.1300000000000000001", kind: "command" } as const;

it("[P7] commands are registered once, and again only when they change", async () => {
  const { host, interactions } = world();
  await interactions.register();
  await interactions.register();
  assert.equal(requests("PUT", /commands$/), 1);
  host.kv.put("commands", "others");
  discord.failNext("PUT .*commands", 500);
  await interactions.register();
  assert.equal(host.kv.get("commands"), "others");
  await interactions.register();
  assert.equal(requests("PUT", /commands$/), 3);
});

it("[P7] one part uses the answer slot, for fourteen minutes", async () => {
  const { host, interactions } = world();
  interactions.open(command);
  await interactions.defer(command);
  assert.equal(await interactions.placeFor(command.id, "a/0"), command.token);
  interactions.answered(command.id, "a/0");
  // A retry of the same part uses the same slot; another part does not.
  assert.equal(await interactions.placeFor(command.id, "a/0"), command.token);
  assert.equal(await interactions.placeFor(command.id, "b/0"), undefined);
  host.time += 14 * 60_000;
  assert.equal(await interactions.placeFor(command.id, "a/0"), undefined);
  await interactions.sweep();
  assert.equal(requests("DELETE", /@original$/), 0);
  assert.deepEqual(host.kv.keys("i."), []);
});

it("[P7] an unanswered command stops showing thinking", async () => {
  const { host, interactions } = world();
  interactions.open(command);
  await interactions.defer(command);
  await interactions.sweep();
  assert.equal(requests("DELETE", /@original$/), 0);
  host.time += 15 * 60_000;
  await interactions.sweep();
  assert.equal(requests("DELETE", /@original$/), 1);
  assert.deepEqual(host.kv.keys("i."), []);
});

it("[P7] an answer elsewhere deletes the acknowledgement; an answer in the slot stays", async () => {
  const { host, interactions } = world();
  const before = requests("DELETE", /@original$/);
  interactions.open(command);
  await interactions.dismiss(command.id);
  assert.equal(requests("DELETE", /@original$/), before + 1);
  assert.equal(await interactions.placeFor(command.id, "a/0"), undefined);
  interactions.open(command);
  interactions.answered(command.id, "a/0");
  await interactions.dismiss(command.id);
  assert.equal(requests("DELETE", /@original$/), before + 1);
  assert.equal(host.kv.keys("i.").length, 1);
});

it("[P7] a late command has no answer slot", async () => {
  const { host, interactions } = world();
  discord.failNext("POST /interactions/", 404);
  interactions.open(command);
  await interactions.defer(command);
  assert.equal(await interactions.placeFor(command.id, "a/0"), undefined);
  assert.ok(host.logs.includes("defer_failed"));
});

it("[AP14] a pressed button is known to the next instance, for one part, and for a day", async () => {
  const { host, interactions } = world();
  const button = { id: "1300000000000000009", token: "tok", kind: "button", asked: { messageId: "77777777", text: "May I?" } } as const;
  interactions.open(button);
  await interactions.defer(button);
  const { run } = restClient({ token: discord.token, api: discord.api, origin: discord.origin });
  const next = new Interactions({ host, run, applicationId: () => APPLICATION });
  assert.equal(next.pressed(button.id, "a/0")?.messageId, "77777777");
  next.shown(button.id, "a/0");
  // A retry of the same part edits the same message; a further part is a message of its own.
  assert.equal(next.pressed(button.id, "a/0")?.text, "May I?");
  assert.equal(next.pressed(button.id, "b/0"), undefined);
  host.time += 24 * 3_600_000;
  await next.sweep();
  assert.equal(next.pressed(button.id, "a/0"), undefined);
  assert.deepEqual(host.kv.keys("b."), []);
});
