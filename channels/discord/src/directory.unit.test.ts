import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { MemoryHost } from "../test/memory-host.ts";
import { Directory } from "./directory.ts";

const BOT = "100000000000000001";
const GUILD = "200000000000000001";
const CHANNEL = "300000000000000001";
const THREAD = "300000000000000002";
const server = {
  id: GUILD,
  name: "Home",
  roles: [
    { id: "600000000000000001", tags: { bot_id: BOT } },
    { id: "600000000000000002", tags: { bot_id: "1" } },
  ],
  members: [{ user: { id: BOT }, roles: ["600000000000000003"] }],
  channels: [{ id: CHANNEL, type: 0, name: "general" }],
  threads: [{ id: THREAD, type: 11, name: "plans" }],
};
const item = { key: "x", inbound: { peer: { kind: "dm" as const, id: "1" }, message: { id: "x", text: "" }, receivedAt: 0 }, files: [] };

test("[P7] a server's data is known, also after a restart", () => {
  const host = new MemoryHost();
  const directory = new Directory(host.kv);
  assert.equal(directory.hear("GUILD_CREATE", server, BOT), true);
  for (const known of [directory, new Directory(host.kv)]) {
    assert.deepEqual(known.channel(CHANNEL), { type: 0, guildId: GUILD, name: "general" });
    assert.deepEqual(known.channel(THREAD), { type: 11, guildId: GUILD, name: "plans" });
    assert.deepEqual([...known.botRoles(GUILD)].toSorted(), ["600000000000000001", "600000000000000003"]);
    assert.equal(known.guildCount, 1);
  }
});
test("[P7] channels are added, changed and removed; an unavailable server stays known", () => {
  const host = new MemoryHost();
  const directory = new Directory(host.kv);
  directory.hear("GUILD_CREATE", server, BOT);
  directory.hear("CHANNEL_UPDATE", { id: CHANNEL, guild_id: GUILD, type: 0, name: "lobby\u202e" }, BOT);
  assert.equal(directory.channel(CHANNEL)?.name, "lobby");
  directory.hear("THREAD_DELETE", { id: THREAD, guild_id: GUILD }, BOT);
  assert.equal(directory.channel(THREAD), undefined);
  directory.hear("GUILD_DELETE", { id: GUILD, unavailable: true }, BOT);
  assert.equal(directory.guildCount, 1);
  directory.hear("GUILD_DELETE", { id: GUILD }, BOT);
  assert.deepEqual([directory.guildCount, directory.channel(CHANNEL), host.kv.keys("guild.")], [0, undefined, []]);
});
test("[P7] read positions only grow", () => {
  const directory = new Directory(new MemoryHost().kv);
  const last = (): string | undefined => directory.conversations()[0]?.last;
  for (const [messageId, expected] of [
    ["99999", "99999"],
    ["100000", "100000"],
    ["99998", "100000"],
  ] as const) {
    directory.remember({ item, channelId: CHANNEL, messageId }, 1);
    assert.equal(last(), expected);
  }
});
test("[P7] conversations, people, channels and own messages are bounded", () => {
  const host = new MemoryHost();
  const directory = new Directory(host.kv);
  for (let index = 0; index < 2_100; index++) {
    const id = String(500_000_000_000_000_000n + BigInt(index));
    directory.remember({ item, channelId: id, messageId: "100000", dmUserId: id }, index);
    directory.rememberOwn(id);
  }
  directory.prune();
  assert.deepEqual(
    [host.kv.keys("read.").length, host.kv.keys("dm-user.").length, host.kv.keys("dm-channel.").length],
    [200, 2_000, 2_000],
  );
  assert.deepEqual([directory.isOwnMessage("500000000000000000"), directory.isOwnMessage("500000000000002099")], [false, true]);
  const channels = Array.from({ length: 5_000 }, (_, index) => ({ id: String(300_000_000_000_000_000n + BigInt(index)), type: 0 }));
  directory.hear("GUILD_CREATE", { ...server, channels, threads: channels }, BOT);
  assert.ok((host.rows.get(`guild.${GUILD}`)?.length ?? 0) < 100_000);
});
test("[P7] no server data causes an exception", () => {
  const types = fc.constantFrom("GUILD_CREATE", "GUILD_DELETE", "CHANNEL_CREATE", "THREAD_LIST_SYNC", "THREAD_DELETE", "__proto__");
  const fields = fc.dictionary(fc.constantFrom("id", "guild_id", "channels", "threads", "roles", "members", "name"), fc.jsonValue());
  fc.assert(
    fc.property(types, fields, (type, data) => {
      const directory = new Directory(new MemoryHost().kv);
      directory.hear("GUILD_CREATE", server, BOT);
      assert.equal(typeof directory.hear(type, { ...server, ...data }, BOT), "boolean");
    }),
  );
});
